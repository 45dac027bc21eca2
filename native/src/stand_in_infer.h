// What stands in for libnvinfer while a library is loaded.
#pragma once

#include <string>
#include <tuple>
#include <vector>

// (name, version, namespace) of the creators that static initialisers registered, in their order.
// Calls the creators' getPluginName and getPluginVersion, at their places in version 10 or 8.
std::vector<std::tuple<std::string, std::string, std::string>> creators_registered(
    bool version_10);
