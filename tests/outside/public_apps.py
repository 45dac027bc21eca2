"""Public applications in Python that run as they are on the demo scene, a row each.

A checkout lies in HEADRACE_OUTSIDE as `OWNER+NAME`. nvinfer's and other files in it that name the
author's models are replaced by ones of the demo scene of the same kind. Not here: nkb-tech's
script, since its repository lacks the model that its file for Triton names, and
TranVietTieesn's reference for several sources of test3, which defines functions and calls none.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tests.outside.deepstream_apps import FRAMES

SAMPLES = "/opt/nvidia/deepstream/deepstream/sources/deepstream_python_apps"
COMMON = f"link:{SAMPLES}/apps/common"


class App(NamedTuple):
    """A script of a repository.

    Attributes:
        repository, script, arguments: `{h264}`, `{mp4}`, `{uri}`, `{rtsp}` in arguments, too.
        files: that the author has and the repository has not -> `h264`, `dir`, `link:TARGET`, or
            the kind of a configuration.
        frames: that inference gives.
        at: where the author keeps the repository.
        folder: that it is started in; of the script by default.
        end_s: when Ctrl-C comes, for one that has no end.
        least: not every frame is asked for.
        needs: packages that it imports.
    """

    repository: str
    script: str
    arguments: str = ""
    files: Mapping[str, str] = MappingProxyType({})
    frames: int = FRAMES
    at: str = "/app"
    folder: str = ""
    end_s: int = 0
    least: bool = False
    needs: str = ""


def _rows(
    repository: str, scripts: dict[str, tuple[str, str]], under: str = "", **more: Any
) -> dict[str, App]:
    return {
        name: App(repository, f"{under}{script}", arguments, **more)
        for name, (script, arguments) in scripts.items()
    }


_TRAN = "deepstream-practice/lessons"
_TRAN_AT = "/home/vtea/opt/nvidia/deepstream/deepstream-9.0/sources/deepstream_python_apps"
_TRAN_FILES = {"deepstream-practice/dstest1_pgie_config.txt": "detector", "apps/common": COMMON}


def _tran(script: str, arguments: str, folder: str = "", frames: int = FRAMES) -> App:
    path = f"{_TRAN}/{script}/05_reference.py"
    repository = "TranVietTieesn/guide-deepstream-python"
    return App(repository, path, arguments, _TRAN_FILES, frames, _TRAN_AT, folder)


_PRAT_AT = f"{SAMPLES}/apps/deepstream_1"
_PEOPLE = {
    "dsnvanalytics_pgie_config.txt": "detector", "dsnvanalytics_tracker_config.txt": "tracker",
    "config_nvdsanalytics.txt": "link:../deepstream-nvdsanalytics/config_nvdsanalytics.txt",
}  # fmt: skip
_MAXI = "deepstream/deepstream_apps/"
_MAXI_FILES = {
    "/opt/nvidia/deepstream/deepstream-6.1/deepstream_python_apps": f"link:{SAMPLES}",
    f"{_MAXI}05_VideoFileOutput/dstest3_pgie_config.txt": "detector",
}
_RUIJIE = {
    "/opt/nvidia/deepstream/deepstream/my_apps/test_data": "dir", "examples/common": COMMON,
    "examples/01_deepstream_test_1/dstest1_pgie_config.txt": "detector",
    "examples/02_custom_model_video_detection/dstest1_pgie_config.txt": "detector",
}  # fmt: skip
_RUIJIE_THREE = (
    _RUIJIE
    | {"/workspace": "dir"}
    | {  # empty files
        f"examples/02_test/dstest2_pgie_{number}_config.txt": "detector" for number in (2, 3)
    }
)
_FORK = {
    "test1": ("deepstream-test1/deepstream_test_1.py", "{h264}"),
    "test2": ("deepstream-test2/deepstream_test_2.py", "{h264}"),
}
_TEST3 = {"test3": ("deepstream-test3/deepstream_test_3.py", "-i {uri} {uri}")}


def _fork(owner: str, scripts: dict[str, tuple[str, str]], frames: int = FRAMES) -> dict[str, App]:
    named = {f"{owner}-{name}": row for name, row in scripts.items()}
    return _rows(f"{owner}/deepstream_python_apps", named, "apps/", frames=frames)


APPS = {
    # Pose and faces, with key points behind each object's mask.
    **{
        f"yolo-{kind.lower()}": App(
            f"marcoslucianops/DeepStream-Yolo-{kind}", "deepstream.py", "-s {uri} -c our.txt",
            {"our.txt": "pose"},
        )
        for kind in ("Pose", "Face")
    },
    # Forks of the samples.
    **_fork("1zqqx", _FORK), **_fork("1zqqx", _TEST3, 2 * FRAMES),
    **_fork("rmclabs-io", _FORK), **_fork("rmclabs-io", _TEST3, 2 * FRAMES),
    **_fork("rmclabs-io", {
        "analytics": ("deepstream-nvdsanalytics/deepstream_nvdsanalytics.py", "{uri}")
    }),
    **_fork("intflow", _FORK),
    **_fork("intflow", {"test3": (_TEST3["test3"][0], "{uri} {uri}")}, 2 * FRAMES),
    # A course: each lesson's reference, without pyds in the first.
    "tran-infer-nopyds": _tran("beginning/04_primary_infer", "{h264}"),
    "tran-probe": _tran("beginning/05_probe_batch_meta", "{h264}"),
    "tran-osd": _tran("beginning/06_osd_overlay_counts", "{h264}"),
    "tran-multi": _tran("beginning/08_multisource_batching", "{h264} {h264}", "", 2 * FRAMES),
    "tran-rtsp": _tran("beginning/09_rtsp_source_walkthrough", "{rtsp}"),
    "tran-test1": _tran("topics/baseline_pipeline/01_test1_file_baseline", "{h264}"),
    "tran-tracker": _tran(
        "topics/tracking_and_analytics/01_tracker_and_sgie", "{h264}", "apps/deepstream-test2"
    ),
    "tran-analytics": _tran(
        "topics/tracking_and_analytics/02_nvdsanalytics_rules", "{uri}",
        "apps/deepstream-nvdsanalytics",
    ),
    "tran-redaction": _tran(
        "topics/imagedata_and_memory/03_redaction_and_crops", "-i {uri}",
        "apps/deepstream-imagedata-multistream-redaction",
    ),
    # Applications of their own.
    **_rows("maximofn/deepstream_tensorrt", {
        "maxi-detect": ("01_ObjDetect/objDetect.py", "-i {h264}"),
        "maxi-metadata": ("02_Metadata/metadata.py", "-i {h264}"),
        "maxi-networks": ("03_MultipleNetworks/multipleNetworks.py", "-i {h264}"),
        "maxi-file": ("05_VideoFileOutput/videoFileOutput.py", "-i {uri}"),
        "maxi-mp4": ("05_VideoFileOutput/deepstream_test3_mp4_out.py", "-i {uri} -o out.mp4"),
    }, _MAXI, files=_MAXI_FILES),
    **_rows("maximofn/deepstream_tensorrt", {
        "maxi-multi": ("04_MultiStream/multiStream.py", "-i {uri} {uri}"),
    }, _MAXI, files=_MAXI_FILES, frames=2 * FRAMES),
    **_rows("pratheesh-bi3/deepstream_1", {  # they loop
        "prat-deepstream2": ("deepstream2.py", "{mp4}"),
        "prat-test1": ("deepstream_test_1.py", "{mp4}"),
        "prat-test2": ("deepstream_test_2.py", "{mp4}"),
    }, files={"dstest1_pgie_config.txt": "detector"}, at=_PRAT_AT, end_s=60, least=True),
    "prat-people": App("pratheesh-bi3/deepstream_1", "people.py", "{uri}", _PEOPLE, at=_PRAT_AT),
    **_rows("RuijieSpace/Deepstream_Python_Stack", {
        "ruijie-test1": ("01_deepstream_test_1/deepstream_test_1.py", "{h264}"),
        "ruijie-custom": (
            "02_custom_model_video_detection/01_custom_model_video_detection.py", "{h264}"
        ),
    }, "examples/", files=_RUIJIE),
    **_rows("RuijieSpace/Deepstream_Python_Stack", {
        "ruijie-parallel": ("01_deepstream_test_2_muti_model_press_test.py", "{mp4}"),
        "ruijie-serial": ("02_deepstream_test_2_muti_model_serial_press_test.py", "{mp4}"),
    }, "examples/02_test/", files=_RUIJIE_THREE),
    **_rows("mbicl/deepstream_app", {
        "mbicl-yunet": ("yunet/deepstream-yunet.py", "{uri} our.txt"),
        "mbicl-yunet-test": ("yunet/yunet_test.py", "-i {uri} --no-display"),
        "mbicl-peoplenet": ("peoplenet/deepstream_test_3.py", "-i {uri} --no-display"),
    }, "deepstream-", files={
        "deepstream-yunet/our.txt": "detector",
        "deepstream-yunet/dstest3_pgie_config.txt": "detector",
        "deepstream-peoplenet/dstest3_pgie_config.txt": "detector",
    }),
    "jinb-4ch": App(
        "jinbeomjeong/deepstream_yolo", "deepstream_yolo11_4ch_gpu_fp16.py",
        "{mp4} {mp4} {mp4} {mp4} -o out.mp4", frames=4 * FRAMES,
    ),
    "jinb": App("jinbeomjeong/deepstream_yolo", "deepstream_yolo11_frame_latency.py", "{mp4}"),
    "chinthysl": App("chinthysl/deepstream-python", "test.py", "{mp4} 0 0 1920 1080 10"),
    **_rows("ruhyadi/deepstream-py", {
        "ruhyadi-1": ("app_1.py", ""), "ruhyadi-2": ("app_2.py", "")
    }, "src/stream/tutorial/", folder=".", needs="rootutils colorlog"),
    **_rows("NguyenVanThanhHust/Deepstream_Pratice", {
        "nguyen-test1": ("main.py", "{h264}")
    }, "Deepstream_python/Deepstream_test1/"),
    **_rows("ravioli158/deepstream_apps", {
        "ravioli-test_1": ("deepstream-test1/test_1.py", "{h264}"),
        "ravioli-test2": ("deepstream-test2/app.py", "{h264}"),
    }, "apps/", files={
        "samples/streams/sample_720p.h264": "h264",
        "apps/deepstream-test2/dstest1_pgie_config.txt": "detector",
    }),
    "pydstream": App(
        "imneonizer/pydstream", "samples/deepstream-test1/deepstream_test_1.py", "",
        {"samples/deepstream-test1/dstest1_pgie_config.txt": "detector"},
    ),
    "z430": App(
        "z430/deepstream-python", "main.py", "-i {uri}", {"outputs": "dir"}, needs="loguru pytz"
    ),
    **_rows("LeoAKALiu/deepstream-vehicle-detection", {
        "leoaka": ("deepstream_vehicle_detection.py", "{h264}")
    }, "python_apps/"),
    "videos-h264": App(
        "1095788063/deepstream-python-rtsp-video-h264-gstreamer", "deepstream_videos_h264.py",
        frames=4 * FRAMES,
    ),
    "leo-run": App(
        "leo2105/deepstream_rtsp", "ds-analytics/run.py", "{uri}",
        {"/app": "link:/app_leo/ds-analytics"}, at="/app_leo",
    ),
    "jsm-out2": App(
        "jsm9720/deepstream_python_apps",
        "apps/deepstream-rtsp-in-rtsp-out2/deepstream_test1_rtsp_in_rtsp_out.py", "-i {rtsp}",
        frames=200, end_s=90, least=True,
    ),
}  # fmt: skip
