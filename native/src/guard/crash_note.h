#pragma once

namespace headrace::guard {

// Fatal signals that nothing handles say which plugin runs in their thread.
void note_plugins();

}  // namespace headrace::guard
