"""Published applications in C and C++ that run on the demo scene, a row each."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.outside.app_models import SUPPRESSED
from tests.outside.deepstream_apps import (
    CLASSES,
    DETECTOR,
    FRAMES,
    MASKS_CONFIG,
    PREPROCESS,
    READER,
)
from tests.outside.service_maker_apps import as_yaml

POSE = (
    SUPPRESSED
    + """

def parse_masks(layers, network, params):
    import sys
    sys.path.append("{scene}")
    from conveyor_parser import parse_conveyor
    found = parse_conveyor(layers, network, params)
    found = found.select(suppressed(found))
    points = np.ones((17, 3), np.float32)
    masks = [points * (left, top, 1) for left, top, _, _ in found.boxes]
    return Detections(found.boxes, found.scores, found.class_ids, masks=masks)
"""
)
ANALYTICS = (
    "[property]\nenable=1\nconfig-width=1920\nconfig-height=1080\nosd-mode=1\n"
    "[roi-filtering-stream-0]\nenable=1\nroi-RF=0;0;1900;0;1900;1000;0;1000\nclass-id=-1\n"
)
DEWARPER = (
    "[property]\noutput-width=640\noutput-height=360\nnum-batch-buffers=1\n"
    "[surface0]\nprojection-type=3\nsurface-index=0\nwidth=640\nheight=360\n"
    "focal-length=400\nsrc-fov=100\n"
)
TRACK = (
    "[tracker]\ntracker-width=640\ntracker-height=384\n"
    "ll-lib-file=/x/libnvds_nvmultiobjecttracker.so\n"
)
READ = {number: READER.replace("{number}", str(number)) for number in (2, 3, 4)}
FIND, TENSORS = DETECTOR.replace("{batch}", "1"), "[property]\noutput-tensor-meta=1"
ROOT, TAO, REFERENCE = (f"DeepStream/src/apps/{n}" for n in (
    "sample_apps/deepstream-", "tao_apps/apps/", "reference_apps/"
))  # fmt: skip
OTHER, OLD = "tao_others/", "deepstream-6.1/sources/apps/sample_apps/deepstream-"
SOURCE_LIST = "source-list:\n  list: {mp4}\n"
GIES = "".join(
    f"{name}-gie{place}:\n  plugin-type: 0\n  config-file-path: {file}.txt\n  unique-id: {number}\n"
    for name, place, file, number in (
        ("primary", "", "find", 1), ("secondary", "0", "read2", 2), ("secondary", "1", "read3", 3)
    )
)  # fmt: skip
LPR = (
    f"{SOURCE_LIST}analytics:\n  enable: 1\n  config-file: analytics.txt\n"
    f"output:\n  type: 2\n{GIES}tracker:\n  tracker-width: 640\n  tracker-height: 384\n"
)
APP = """[application]
enable-perf-measurement=1
[tiled-display]
enable=1
rows=1
columns=1
width=640
height=360
[source0]
enable=1
type=3
uri={uri}
[sink0]
enable=1
type=1
sync=0
[osd]
enable=1
[streammux]
batch-size=1
width=1920
height=1080
[primary-gie]
enable=1
config-file=find.txt
[tests]
file-loop=0
"""

DEMUXED = """source:
  uri-list: {uri}
  ip-address: localhost
  port: 0
  drop-pipeline-eos: 0
  live-source: 0
  max-batch-size: 1
  batched-push-timeout: 40000
  width: 640
  height: 384
primary-gie:
  plugin-type: 0
  config-file-path: find.yml
tiler:
  width: 640
  height: 384
"""

SAVED = """[img-save]
enable=1
output-folder-path={here}
save-img-full-frame=1
save-img-cropped-obj=0
frame-to-skip-rules-path=rules.csv
second-to-skip-interval=1
min-confidence=0.1
max-confidence=1.0
min-box-width=5
min-box-height=5
"""
RULES = "begin,end,skipped\n0:00,23:59,0:0:2\n"


class App(NamedTuple):
    """A program.

    Attributes:
        sources: patterns of files, below the folder of checkouts.
        arguments: with `{h264}`, `{uri}`, `{mjpeg}`, `{jpeg}`, `{raw}`, `{rtsp}` and `{here}`.
        configs: name of a file that it reads -> its text.
        options: of `headrace compile --exe`; `{outside}` is the folder of checkouts.
        frames: that inference gives.
        says: words of its output.
        compiler: of its sources named `.c`, as its Makefile has it.
        ends: False for one that has no end: Ctrl-C comes behind its last frame.
    """

    sources: str
    arguments: str
    configs: dict[str, str]
    options: str = ""
    frames: int = FRAMES
    says: str = ""
    compiler: str = "gcc"
    ends: bool = True


def _sample(name: str, file: str, arguments: str, config: str, **more: Any) -> App:
    configs = {config: FIND, **more.pop("configs", {})}
    return App(f"{ROOT}{name}/{file}", arguments, configs, **more)


_MASKS = MASKS_CONFIG.replace("{batch}", "1").replace("{scratch}/m", "{here}/m")
_POSE = {"pose.txt": _MASKS, "masks.py": POSE}
_YOLO = ("{0}/deepstream.c {0}/modules/interrupt.c {0}/modules/perf.c", "-s {uri} -c pose.txt")
_TWO = {f"dstest2_sgie{n}_config.txt": READ[n + 1] for n in (1, 2)}
_TWO["dstest2_tracker_config.txt"] = TRACK
_THREE = {f"dstest_sgie{n}_config.txt": READ[n + 1] for n in (1, 2)}
_LPR = {"app.yml": LPR, "analytics.txt": ANALYTICS, "read2.txt": READ[2], "read3.txt": READ[3]}
_UTILS = "DeepStream/src/utils/nvds_msgapi/common_src/*.cpp"
_SET = (
    f"{ROOT}app/deepstream_app.c {ROOT}app/deepstream_app_config*.c* {_UTILS} "
    "DeepStream/src/apps/common/src/*.c DeepStream/src/apps/common/src/deepstream-yaml/*.cpp"
)
_OF_SET = (
    f"-I {{outside}}/DeepStream/src/apps/common/includes -I {{outside}}/{ROOT}app -l yaml-cpp "
    "-D DS_VERSION_MAJOR=5 -D DS_VERSION_MINOR=0 -l gstrtspserver-1.0 -l crypto -l X11"
)
_BROKER = "-i {h264} -p libnvds_mqtt_proto.so --conn-str=127.0.0.1;{mqtt} -t t --no-display"
_SENSOR = "[sensor0]\nenable=1\ntype=Camera\nid=one\n"
# They lock a mutex of their stack that they never initialise.
_ZEROED = "--flag -ftrivial-auto-var-init=zero -l yaml-cpp"
_TAO = {"compiler": "g++", "options": _ZEROED}
APPS = {
    "test1": _sample("test1", "*.c", "{h264}", "dstest1_pgie_config.txt", says="Number of objects"),
    "test2": _sample("test2", "*.c", "{h264}", "dstest2_pgie_config.txt", configs=_TWO),
    "test3": _sample("test3", "*.c", "{uri} {uri}", "dstest3_pgie_config.txt", frames=2 * FRAMES),
    "user-metadata": _sample(
        "user-metadata-test", "*.c", "{h264}", "dsmeta_pgie_config.txt", says="nvinfer src pad"
    ),
    "gst-metadata": _sample("gst-metadata-test", "*.c", "{h264}", "dsmeta_pgie_config.txt"),
    "appsrc": _sample(
        "appsrc-test", "*.c", "{raw} 640 360 30 I420", "dstest_appsrc_config.txt"
    ),
    "appsrc-cuda": _sample(
        "appsrc-cuda-test", "*.c", "{raw} 640 360 30 I420", "dstest_appsrc_config.txt"
    ),
    "image-decode": _sample(
        "image-decode-test", "*.c", "{jpeg} {jpeg}", "dstest_image_decode_pgie_config.txt", frames=2
    ),
    "image-meta": _sample("image-meta-test", "*.c", "0 {uri}", "ds_image_meta_pgie_config.txt"),
    "preprocess": _sample(
        "preprocess-test", "*.cpp", "config_preprocess.txt ds_preproc_pgie_config.txt {uri}",
        "ds_preproc_pgie_config.txt", configs={"config_preprocess.txt": PREPROCESS},
    ),
    "analytics": _sample(
        "nvdsanalytics-test", "*.cpp", "{uri}", "nvdsanalytics_pgie_config.txt",
        configs={"config_nvdsanalytics.txt": ANALYTICS},
    ),
    "dewarper": _sample(
        "dewarper-test", "*.c", "--sink 1 {uri} 6", "unused.txt",
        configs={"config_dewarper.txt": DEWARPER}, frames=0,
    ),
    **{
        f"tao-{name}": App(
            f"{TAO}tao_{name}/*.c", "-c f.txt -i {uri} -f", {"f.txt": text}, **_TAO
        )
        for name, text in (
            ("detection", FIND), ("classifier", FIND), ("segmentation", CLASSES)
        )
    },
    "lpr": App(
        f"{TAO}{OTHER}deepstream_lpr_app/*.cpp {TAO}{OTHER}common/*.cpp", "app.yml",
        {"find.txt": FIND, **_LPR},
        f"-I {{outside}}/{TAO}{OTHER}common -l yaml-cpp -l gstrtspserver-1.0",
    ),
    **{
        name: App(
            f"{folder} {_SET}", "-c app.txt",
            {"app.txt": APP + SAVED, "find.txt": FIND, "rules.csv": RULES}, _OF_SET,
        )
        for name, folder in (
            ("app", ROOT + "app/deepstream_app_main.c"), ("test5", ROOT + "test5/*.c"),
            ("mdx-perception", f"{TAO}{OTHER}deepstream-mdx-perception-app/*.c"),
            ("transfer-learning", ROOT + "transfer-learning-app/*.cpp"),
        )
    },
    "test4": _sample(
        "test4", "*.c*", _BROKER, "dstest4_pgie_config.txt", options="-l yaml-cpp",
        configs={"dstest4_msgconv_config.txt": _SENSOR},
    ),
    "smart-record": App(
        ROOT + "testsr/*.c", "{rtsp}", {"dstestsr_pgie_config.yml": as_yaml(FIND)}
    ),
    **{
        f"demuxer-{kind}": App(
            f"{ROOT}demuxer-{kind}/*.c", "app.yml", {"app.yml": DEMUXED, "find.yml": as_yaml(FIND)}
        )
        for kind in ("static", "dynamic")
    },
    "custom-tile-config": App(
        REFERENCE + "deepstream-custom-tile-config/*.c", "-i {uri} --no-display", {}, frames=0
    ),
    "back-to-back": App(
        "deepstream_reference_apps/legacy_apps/back-to-back-detectors/*.c", "{h264}",
        {"primary_detector_config.txt": FIND, "config_infer_primary_yoloV8_face.txt":
         FIND.replace("gie-unique-id=1", "gie-unique-id=2\nprocess-mode=2\noperate-on-gie-id=1")},
    ),
    "redaction": App(
        "redaction_with_deepstream/*.c", "-c f.txt -i {mp4} -o out.mkv", {"f.txt": FIND}
    ),
    "pose": App(_YOLO[0].format("DeepStream-Yolo-Pose"), _YOLO[1], _POSE, says="EOS"),
    "face": App(_YOLO[0].format("DeepStream-Yolo-Face"), _YOLO[1], _POSE, says="EOS"),
    "opencv": App(
        "deepstream-yolov3-cplus/deepstream_test1_app.cpp", "{h264}",
        {"config_infer_primary_yoloV3.txt": FIND},
        "-I /usr/include/opencv4 -l opencv_core -l opencv_imgproc -l opencv_imgcodecs",
    ),
    "test1-rtsp": App(OLD + "test1-rtsp/*.c", "{h264}", {"dstest1_pgie_config.txt": FIND}),
    "test2-rtsp": App(
        OLD + "test2-rtsp/*.c", "{h264}",
        {"dstest2_pgie_config.txt": FIND, "dstest2_sgie3_config.txt": READ[4], **_TWO},
    ),
}  # fmt: skip
