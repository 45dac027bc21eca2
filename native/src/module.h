// What fills the module: one function for each file of bindings.
#pragma once
#include <nanobind/nanobind.h>

namespace headrace {

namespace preprocess {
void bind(nanobind::module_ &m);         // preprocess/bindings.cpp
void bind_tables(nanobind::module_ &m);  // preprocess/tables.cpp
void bind_remap(nanobind::module_ &m);   // preprocess/remap.cpp
}  // namespace preprocess
namespace cluster {
void bind(nanobind::module_ &m);  // cluster/bindings.cpp
}
namespace decode {
void bind_scores(nanobind::module_ &m);   // decode/scores.cpp
void bind_boxes(nanobind::module_ &m);    // decode/boxes.cpp
void bind_segment(nanobind::module_ &m);  // decode/segment.cpp
}  // namespace decode
namespace core {
void bind_call_lock(nanobind::module_ &m);    // core/call_lock.cpp
void bind_memory_view(nanobind::module_ &m);  // core/memory_view.cpp
void bind_connections(nanobind::module_ &m);  // core/connections.cpp
void bind_tensors(nanobind::module_ &m);      // core/tensors.cpp
}  // namespace core
namespace custom {
void bind(nanobind::module_ &m);                 // custom/library.cpp
void bind_loaded_library(nanobind::module_ &m);  // custom/loaded_library.cpp
}  // namespace custom
namespace stand_ins {
void bind(nanobind::module_ &m);  // stand_ins/stand_in.cpp
}
namespace track {
void bind(nanobind::module_ &m);          // track/bindings.cpp
void bind_iou(nanobind::module_ &m);      // track/iou.cpp
void bind_objects(nanobind::module_ &m);  // track/objects.cpp
void bind_targets(nanobind::module_ &m);  // track/target_bindings.cpp
}  // namespace track
namespace results {
void bind_count_pairs(nanobind::module_ &m);   // results/count_pairs.cpp
void bind_gather(nanobind::module_ &m);        // results/gather.cpp
void bind_json_numbers(nanobind::module_ &m);  // results/json_numbers.cpp
void bind_blend(nanobind::module_ &m);         // results/blend.cpp
void bind_masks(nanobind::module_ &m);         // results/masks.cpp
void bind_magnitudes(nanobind::module_ &m);    // results/magnitudes.cpp
}  // namespace results
namespace draw {
void bind_sheet(nanobind::module_ &m);   // draw/sheet.cpp
void bind_glyphs(nanobind::module_ &m);  // draw/glyphs.cpp
}  // namespace draw
namespace plugins {
void bind_lent(nanobind::module_ &m);    // plugins/lent.cpp
void bind_nms(nanobind::module_ &m);     // plugins/nms.cpp
void bind_repack(nanobind::module_ &m);  // plugins/repack_bindings.cpp
void bind_sample(nanobind::module_ &m);  // plugins/sample.cpp
void bind_watch(nanobind::module_ &m);   // plugins/watch.cpp
}  // namespace plugins
namespace ort {
void bind(nanobind::module_ &m);  // ort/operators.cpp
}
namespace guard {
void bind(nanobind::module_ &m);             // guard/bindings.cpp
void bind_crash(nanobind::module_ &m);       // guard/crash.cpp
void bind_memory(nanobind::module_ &m);      // guard/memory.cpp
void bind_sandbox(nanobind::module_ &m);     // guard/sandbox.cpp
void bind_crash_note(nanobind::module_ &m);  // guard/crash_note.cpp
}  // namespace guard
namespace foreign {
void bind(nanobind::module_ &m);  // native/foreign/bindings.cpp
}
namespace hosting {
void bind(nanobind::module_ &m);  // host/foreign.cpp
}

}  // namespace headrace
