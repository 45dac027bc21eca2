// Calls into plugins: what their results need and this host has no function for is an error.
#pragma once

#include "custom/thrown.h"
#include "stand_ins/stand_in.h"

namespace headrace::custom {

// While it lives, calls of functions that are not there are kept.
struct Watched : stand_ins::Watch {
    // Throws CustomCodeError behind a call that needed one.
    void require_done() const {
        if (!not_done().empty())
            throw CustomCodeError("a call that this host has no function for: " + not_done());
    }
};

}  // namespace headrace::custom
