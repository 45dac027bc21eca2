// What the program of the command line says when a library in its own process ends it by a signal.
#pragma once

#include <string>

// Fatal signals that nothing handles yet write "noria: SIGNAL: " and the text to standard error, and
// end the process as they would have: with the same signal, at the same place. A handler that is
// installed later is not disturbed. Another call replaces the text.
void note_crashes(const std::string &text);
