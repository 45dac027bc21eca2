// headrace._core._native: kernels and the custom-library host. One bind_* function per file.
#include "module.h"

NB_MODULE(_native, m) {
    // A run that ends by an error leaves objects to the end of the process: no words for a user.
    nanobind::set_leak_warnings(false);
    m.doc() = "Native kernels of headrace. Python checks arguments; this module assumes valid input.";
    m.def("native_api", [] { return HEADRACE_NATIVE_API; },
          "Digest of the functions here when this was compiled, see headrace._core._native_api.");
    bind_preprocess(m);
    bind_preprocess_tables(m);
    bind_cluster(m);
    bind_decode(m);
    bind_decode_boxes(m);
    bind_call_lock(m);
    bind_custom_library(m);
    bind_stand_in(m);
    bind_draw_blend(m);
    bind_guard(m);
    bind_guard_crash(m);
    bind_guard_memory(m);
    bind_guard_sandbox(m);
    bind_crash_note(m);
    bind_segment(m);
    bind_track(m);
    bind_track_iou(m);
    bind_track_found(m);
    bind_count_pairs(m);
    bind_json_numbers(m);
    bind_plugin_nms(m);
    bind_host(m);
    bind_plugin_sample(m);
    bind_ort_operators(m);
    bind_loaded_library(m);
    bind_memory_view(m);
}
