// Included by sources written for 6.x and older.
//
// Part of noria, Apache-2.0.
#pragma once

namespace nvuffparser {
class IUffParser;
}
