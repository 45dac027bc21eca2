// Ways to the rest of the machine: connections, queues, files, rights, devices, prints.
#pragma once
#include "way.h"

namespace {

// row: opens a connection
WAY(internet, "filter") { return socket(AF_INET, SOCK_STREAM, 0); }
WAY(internet_datagrams, "filter") { return socket(AF_INET6, SOCK_DGRAM, 0); }
WAY(netlink, "filter") { return socket(AF_NETLINK, SOCK_RAW, 0); }
WAY(raw_packets, "filter") { return socket(AF_PACKET, SOCK_RAW, 0); }
WAY(virtual_machine, "filter") { return socket(AF_VSOCK, SOCK_STREAM, 0); }
WAY(kernel_crypto, "filter") { return socket(AF_ALG, SOCK_SEQPACKET, 0); }
WAY(any_family, "filter") {
    for (int family = 0; family < 50; family++)
        for (int kind : {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET})
            if (family != AF_UNIX && socket(family, kind, 0) >= 0) return 0;
    return socket(AF_XDP, SOCK_RAW, 0);
}
WAY(pair_of_other_kind, "filter") {
    int ends[2];
    return socketpair(AF_TIPC, SOCK_STREAM, 0, ends);
}
WAY(connect_pair, "filter") {
    const sockaddr_un address = path_address(text("ESCAPE_DATAGRAMS"));
    return connect(pair(SOCK_DGRAM), reinterpret_cast<const sockaddr *>(&address), sizeof address);
}
WAY(datagram, "filter") {
    const sockaddr_un address = path_address(text("ESCAPE_DATAGRAMS"));
    return sendto(pair(SOCK_DGRAM), "out", 3, 0, reinterpret_cast<const sockaddr *>(&address),
                  sizeof address);
}
WAY(abstract_datagram, "filter") {
    const sockaddr_un address = abstract_address();
    return sendto(pair(SOCK_DGRAM), "out", 3, 0, reinterpret_cast<const sockaddr *>(&address),
                  abstract_size());
}
WAY(message, "filter") {
    sockaddr_un address = path_address(text("ESCAPE_DATAGRAMS"));
    char out[] = "out";
    iovec part = {out, 3};
    msghdr what = {};
    what.msg_name = &address;
    what.msg_namelen = sizeof address;
    what.msg_iov = &part;
    what.msg_iovlen = 1;
    return sendmsg(pair(SOCK_DGRAM), &what, 0);
}
WAY(messages, "filter") {
    sockaddr_un address = abstract_address();
    char out[] = "out";
    iovec part = {out, 3};
    mmsghdr what = {};
    what.msg_hdr.msg_name = &address;
    what.msg_hdr.msg_namelen = abstract_size();
    what.msg_hdr.msg_iov = &part;
    what.msg_hdr.msg_iovlen = 1;
    return sendmmsg(pair(SOCK_DGRAM), &what, 1, 0);
}
WAY(name_of_socket, "filter") {
    const sockaddr_un address = path_address(own("socket"));
    return bind(pair(SOCK_DGRAM), reinterpret_cast<const sockaddr *>(&address), sizeof address);
}
WAY(rings, "filter") {
    char parameters[120] = {};
    return syscall(425, 4, parameters);
}
// row: makes or opens memory, queues
WAY(shared_memory, "filter") { return shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600); }
WAY(semaphores, "filter") { return semget(IPC_PRIVATE, 1, IPC_CREAT | 0600); }
WAY(queue, "filter") { return syscall(SYS_msgget, IPC_PRIVATE, IPC_CREAT | 0600); }
WAY(named_queue, "filter") { return mq_open("/headrace-escape", O_CREAT | O_RDWR, 0600, nullptr); }

WAY(named_memory, "landlock") { return opened("/dev/shm/headrace-escape", O_RDWR | O_CREAT); }
WAY(memory_of_others, "landlock") { return opened(text("ESCAPE_SHARED"), O_RDWR); }

// row: makes, changes, moves
WAY(new_file, "landlock") { return opened(beside("new.txt"), O_WRONLY | O_CREAT); }
WAY(change_file, "landlock") { return opened(victim(), O_WRONLY); }
WAY(append, "landlock") { return opened(victim(), O_WRONLY | O_APPEND); }
WAY(empty_by_reading, "filter") { return opened(victim(), O_RDONLY | O_TRUNC); }
WAY(shorten, "landlock") { return truncate(victim().c_str(), 0); }
WAY(remove_file, "landlock") { return unlink(victim().c_str()); }
WAY(rename_file, "landlock") { return rename(victim().c_str(), beside("other").c_str()); }
WAY(take_file, "landlock") { return rename(victim().c_str(), own("taken").c_str()); }
WAY(link_file, "landlock") { return link(victim().c_str(), own("linked").c_str()); }
WAY(new_folder, "landlock") { return mkdir(beside("folder").c_str(), 0700); }
WAY(remove_folder, "landlock") { return rmdir(beside("empty").c_str()); }
WAY(new_link, "landlock") { return symlink("/etc", beside("link").c_str()); }
WAY(empty_without_rights, "filter") {  // opened for neither reading nor writing
    return opened(victim(), O_ACCMODE | O_TRUNC);
}
WAY(open_for_neither, "filter") { return opened(victim(), O_ACCMODE); }
WAY(create_anew, "landlock") { return creat(victim().c_str(), 0600); }
WAY(link_of_handle, "landlock") {
    const std::string handle = "/proc/self/fd/" + std::to_string(open(victim().c_str(), O_RDONLY));
    return linkat(AT_FDCWD, handle.c_str(), AT_FDCWD, own("handle").c_str(), AT_SYMLINK_FOLLOW);
}
WAY(own_over_theirs, "landlock") {
    opened(own("mine"), O_WRONLY | O_CREAT);
    return rename(own("mine").c_str(), victim().c_str());
}
WAY(socket_of_name, "filter") {
    const sockaddr_un address = path_address(beside("ear"));
    return bind(pair(SOCK_STREAM), reinterpret_cast<const sockaddr *>(&address), sizeof address);
}
WAY(magic_key, "landlock") { return opened(there("/proc/sysrq-trigger"), O_WRONLY); }
WAY(unnamed_file, "landlock") { return opened(text("ESCAPE_FOLDER"), O_TMPFILE | O_WRONLY); }
WAY(exchange_files, "landlock") {
    opened(own("mine"), O_WRONLY | O_CREAT);
    return syscall(SYS_renameat2, AT_FDCWD, victim().c_str(), AT_FDCWD, own("mine").c_str(), 2);
}
WAY(new_device, "rights") { return mknod(own("device").c_str(), S_IFCHR | 0600, 0x101); }
WAY(kernel_setting, "landlock") { return opened("/proc/sys/kernel/core_pattern", O_WRONLY); }
WAY(control_group, "landlock") {
    return opened(last("/sys/fs/cgroup", S_IFDIR) + "/cgroup.procs", O_WRONLY);
}
WAY(new_pipe, "landlock") { return mkfifo(beside("pipe").c_str(), 0600); }
WAY(through_own_link, "landlock") {
    unlink(own("way").c_str());
    if (symlink(victim().c_str(), own("way").c_str()) != 0) return -1;
    return opened(own("way"), O_WRONLY);
}
WAY(through_path_handle, "landlock") {
    const int place = open(victim().c_str(), O_PATH);
    return opened("/proc/self/fd/" + std::to_string(place), O_WRONLY);
}
WAY(by_structure, "filter") {
    unsigned long how[3] = {O_WRONLY, 0, 0};
    return syscall(437, AT_FDCWD, victim().c_str(), how, sizeof how);
}
WAY(by_handle, "filter") {
    struct {
        unsigned int bytes;
        int type;
        char data[128];
    } handle = {128, 0, {}};
    int mount;
    syscall(SYS_name_to_handle_at, AT_FDCWD, "/", &handle, &mount, 0);
    return syscall(SYS_open_by_handle_at, open("/", O_RDONLY), &handle, O_RDONLY);
}
WAY(working_folder, "landlock") { return opened("escape.txt", O_WRONLY | O_CREAT); }
WAY(in_a_child, "landlock") { return child(change_file); }
WAY(call_in_a_child, "filter") { return child(handle_of_process); }
WAY(in_a_program, "landlock") {
    const std::string line = "echo x 2>/dev/null >> '" + victim() + "'";
    const int status = system(line.c_str());
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : stop(EACCES);
}
WAY(in_a_thread, "landlock") {
    pthread_t thread;
    void *error = nullptr;
    pthread_create(&thread, nullptr, in_thread, reinterpret_cast<void *>(change_file));
    pthread_join(thread, &error);
    return error ? stop(static_cast<int>(reinterpret_cast<long>(error))) : 0;
}

// row: changes rights, owner
WAY(rights_of_file, "filter") { return chmod(victim().c_str(), 0777); }
WAY(rights_by_descriptor, "filter") { return fchmod(open(victim().c_str(), O_RDONLY), 0777); }
WAY(owner_of_file, "filter") { return chown(victim().c_str(), getuid(), getgid()); }
WAY(times_of_file, "filter") { return utimensat(AT_FDCWD, victim().c_str(), nullptr, 0); }
WAY(attribute_of_file, "filter") { return setxattr(victim().c_str(), "user.escape", "x", 1, 0); }
WAY(flags_of_file, "filter") {
    long flags = 0;
    return ioctl(open(victim().c_str(), O_RDONLY), 0x40086602, &flags);
}
WAY(attributes_by_new_call, "filter") {  // setxattrat
    return syscall(463, AT_FDCWD, victim().c_str(), 0, "user.escape", nullptr, 0);
}
WAY(watch_files, "filter") { return syscall(SYS_inotify_init1, 0); }
WAY(watch_folder, "filter") {
    return fcntl(open(text("ESCAPE_FOLDER").c_str(), O_RDONLY | O_DIRECTORY), F_NOTIFY, 2);
}
WAY(lease, "filter") { return fcntl(open(victim().c_str(), O_RDONLY), F_SETLEASE, F_RDLCK); }

// row: reads devices
WAY(type_into_terminal, "filter") {
    char letter = 'x';
    return ioctl(STDOUT_FILENO, TIOCSTI, &letter);
}
WAY(change_terminal, "filter") { return ioctl(STDOUT_FILENO, TIOCSPGRP, nullptr); }
WAY(disk, "landlock") { return opened(last("/dev", S_IFBLK), O_RDWR); }
WAY(kernel_messages, "landlock") { return opened(there("/dev/kmsg"), O_WRONLY); }
WAY(memory_of_machine, "landlock") { return opened(there("/dev/mem"), O_RDWR); }
WAY(machines_within, "landlock") { return opened(there("/dev/kvm"), O_RDWR); }
WAY(file_system_of_user, "landlock") { return opened(there("/dev/fuse"), O_RDWR); }
WAY(network_device, "landlock") { return opened(there("/dev/net/tun"), O_RDWR); }
WAY(input_device, "landlock") { return opened(there("/dev/uinput"), O_RDWR); }
WAY(loop_device, "landlock") { return opened(there("/dev/loop-control"), O_RDWR); }
WAY(new_terminal, "landlock") { return opened(there("/dev/ptmx"), O_RDWR | O_NOCTTY); }
WAY(read_terminal, "landlock") {
    return opened(text("ESCAPE_TERMINAL"), O_RDONLY | O_NOCTTY | O_NONBLOCK);
}
WAY(read_input, "descriptors") {
    char letter;
    return read(STDIN_FILENO, &letter, 1) > 0 ? 0 : stop(ENODATA);
}

// row: reads or changes what the application prints
WAY(read_output, "descriptors") {
    char text[64] = {};
    for (const char *name : {"/proc/self/fd/1", "/proc/self/fd/2"}) {
        const int file = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        const long count = file < 0 ? -1 : read(file, text, sizeof text - 1);
        close(file);
        if (count > 0 && std::strstr(text, "printed before")) return 0;
    }
    return stop(ENODATA);
}
WAY(shorten_output, "descriptors") {  // a file, as the test has it
    return ftruncate(STDERR_FILENO, 0) == 0 ? 0 : stop(ENODATA);
}
WAY(output_that_does_not_wait, "descriptors") {  // the test looks at the application's
    fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK);
    fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK | O_APPEND);
    return stop(ENODATA);
}

}  // namespace
