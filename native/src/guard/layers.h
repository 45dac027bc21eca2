// What of the file system a process keeps: see guard/landlock.cpp, guard/namespaces.cpp.
#pragma once

#include <string>
#include <vector>

namespace headrace::guard {

// Files and folders, with all that is in them. What is not there is left out.
struct Reach {
    std::vector<std::string> reads, writes, devices;  // devices: written and asked (ioctl), too
    bool narrow = false;                              // folders are listed there alone
};

// The version of Landlock in this kernel; 0 without it.
int landlock_version();

// Lets this process, and all that it starts, reach no more than `reach`, connect nowhere, and send
// signals to no other process. Older versions know less of this. Needs PR_SET_NO_NEW_PRIVS. Throws
// std::runtime_error.
void landlock(int version, const Reach &reach);

// Where there is no Landlock: makes everything but `reach.writes` read-only for this process, in
// namespaces of its own. Throws std::runtime_error.
void separate(const Reach &reach);

}  // namespace headrace::guard
