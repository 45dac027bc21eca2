#pragma once
#include <nanobind/nanobind.h>

void bind_preprocess(nanobind::module_ &m);      // preprocess/bindings.cpp
void bind_preprocess_tables(nanobind::module_ &m);  // preprocess/tables.cpp
void bind_cluster(nanobind::module_ &m);         // cluster/bindings.cpp
void bind_decode(nanobind::module_ &m);          // decode/scores.cpp
void bind_decode_boxes(nanobind::module_ &m);    // decode/boxes.cpp
void bind_call_lock(nanobind::module_ &m);       // core/call_lock.cpp
void bind_custom_library(nanobind::module_ &m);  // custom/library.cpp
void bind_stand_in(nanobind::module_ &m);        // stand_ins/stand_in.cpp
void bind_segment(nanobind::module_ &m);         // decode/segment.cpp
void bind_track(nanobind::module_ &m);           // track/bindings.cpp
void bind_track_iou(nanobind::module_ &m);       // track/iou.cpp
void bind_track_found(nanobind::module_ &m);     // track/objects.cpp
void bind_count_pairs(nanobind::module_ &m);     // results/count_pairs.cpp
void bind_json_numbers(nanobind::module_ &m);    // results/json_numbers.cpp
void bind_draw_blend(nanobind::module_ &m);      // results/blend.cpp
void bind_plugin_nms(nanobind::module_ &m);      // plugins/nms.cpp
void bind_plugin_sample(nanobind::module_ &m);   // plugins/sample.cpp
void bind_ort_operators(nanobind::module_ &m);   // ort/operators.cpp
void bind_loaded_library(nanobind::module_ &m);  // custom/loaded_library.cpp
void bind_memory_view(nanobind::module_ &m);     // core/memory_view.cpp
void bind_guard(nanobind::module_ &m);           // guard/bindings.cpp
void bind_guard_crash(nanobind::module_ &m);     // guard/crash.cpp
void bind_guard_memory(nanobind::module_ &m);    // guard/memory.cpp
void bind_guard_sandbox(nanobind::module_ &m);   // guard/sandbox.cpp
void bind_crash_note(nanobind::module_ &m);      // guard/crash_note.cpp
void bind_host(nanobind::module_ &m);            // host/foreign.cpp
