// The host, as libraries find it.
#pragma once

// Makes noria_host_api_1 of this module known to libraries that are opened from now on.
void show_host_to_libraries();
