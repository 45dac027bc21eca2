"""A DeepStream application: decode, batch, infer, draw, encode; a probe reads the metadata.

python pipeline.py ../conveyor/conveyor.mp4 ../conveyor/config_infer_primary.txt out.mp4
"""

import sys
from collections import Counter

import gi

gi.require_version("Gst", "1.0")
import pyds
from gi.repository import GLib, Gst

counts = Counter()


def on_buffer(pad, info):
    """Count the objects of each class."""
    batch = pyds.gst_buffer_get_nvds_batch_meta(hash(info.get_buffer()))
    frames = batch.frame_meta_list
    while frames is not None:
        counts["frames"] += 1
        objects = pyds.NvDsFrameMeta.cast(frames.data).obj_meta_list
        while objects is not None:
            counts[pyds.NvDsObjectMeta.cast(objects.data).obj_label] += 1
            objects = objects.next
        frames = frames.next
    return Gst.PadProbeReturn.OK


def main(video, config, out):
    """Build the pipeline and run it to the end."""
    Gst.init(None)
    pipeline = Gst.parse_launch(
        f"filesrc location={video} ! qtdemux ! h264parse ! nvv4l2decoder ! mux.sink_0 "
        "nvstreammux name=mux batch-size=1 width=1280 height=768 ! "
        f"nvinfer config-file-path={config} ! nvvideoconvert ! nvdsosd name=osd ! "
        f"nvv4l2h264enc ! h264parse ! mp4mux ! filesink location={out}"
    )
    osd = pipeline.get_by_name("osd").get_static_pad("sink")
    osd.add_probe(Gst.PadProbeType.BUFFER, on_buffer)
    loop, failed = GLib.MainLoop(), []
    bus = pipeline.get_bus()
    bus.add_signal_watch()

    def on_message(bus, message):
        if message.type == Gst.MessageType.ERROR:
            failed.append("{}\n{}".format(*message.parse_error()))
        if message.type in (Gst.MessageType.EOS, Gst.MessageType.ERROR):
            loop.quit()

    bus.connect("message", on_message)
    pipeline.set_state(Gst.State.PLAYING)
    loop.run()
    pipeline.set_state(Gst.State.NULL)
    for name, count in sorted(counts.items()):
        print(f"{name:10} {count}")
    return "\n".join(failed) or 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
