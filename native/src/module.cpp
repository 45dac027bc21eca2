// headrace._core._native: kernels and the custom-library host. One bind_* function per file.
#include "module.h"

NB_MODULE(_native, m) {
    // A run that ends by an error leaves objects to the end of the process: no words for a user.
    nanobind::set_leak_warnings(false);
    m.doc() =
        "Native kernels of headrace. Python checks arguments; this module assumes valid input.";
    m.def(
        "native_api", [] { return HEADRACE_NATIVE_API; },
        "Digest of the functions here when this was compiled, see headrace._core._native_api.");
    headrace::preprocess::bind(m);
    headrace::preprocess::bind_tables(m);
    headrace::preprocess::bind_remap(m);
    headrace::cluster::bind(m);
    headrace::decode::bind_scores(m);
    headrace::decode::bind_boxes(m);
    headrace::core::bind_call_lock(m);
    headrace::custom::bind(m);
    headrace::stand_ins::bind(m);
    headrace::results::bind_blend(m);
    headrace::results::bind_masks(m);
    headrace::results::bind_magnitudes(m);
    headrace::draw::bind_sheet(m);
    headrace::draw::bind_glyphs(m);
    headrace::guard::bind(m);
    headrace::guard::bind_crash(m);
    headrace::guard::bind_memory(m);
    headrace::guard::bind_sandbox(m);
    headrace::guard::bind_crash_note(m);
    headrace::decode::bind_segment(m);
    headrace::track::bind(m);
    headrace::track::bind_iou(m);
    headrace::track::bind_objects(m);
    headrace::track::bind_targets(m);
    headrace::results::bind_count_pairs(m);
    headrace::results::bind_gather(m);
    headrace::results::bind_json_numbers(m);
    headrace::plugins::bind_lent(m);
    headrace::plugins::bind_nms(m);
    headrace::plugins::bind_repack(m);
    headrace::hosting::bind(m);
    headrace::foreign::bind(m);
    headrace::plugins::bind_sample(m);
    headrace::plugins::bind_watch(m);
    headrace::ort::bind(m);
    headrace::custom::bind_loaded_library(m);
    headrace::core::bind_memory_view(m);
    headrace::core::bind_connections(m);
    headrace::core::bind_tensors(m);
}
