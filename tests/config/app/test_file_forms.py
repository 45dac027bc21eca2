"""deepstream-app configs after the forms of every release: each loads, and says what it leaves out."""

# ruff: noqa: E501 (a file of forms: one group per line)

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from headrace.config import load_pipeline
from tests.profiles import thinned

APPLICATION = {
    "3.0": "[application]\nenable-perf-measurement=1\nperf-measurement-interval-sec=5\n",
    "4.0": "[application]\nenable-perf-measurement=1\nperf-measurement-interval-sec=5\ngie-kitti-output-dir=/tmp/a\n",
    "6.4": "[application]\nenable-perf-measurement=1\nperf-measurement-interval-sec=5\nkitti-track-output-dir=/tmp/t\nterminated-track-output-dir=/tmp/u\nglobal-gpu-id=0\n",
}
SOURCES = {
    "files": "[source0]\nenable=1\ntype=3\nuri=file://../../streams/sample_%d.mp4\nnum-sources=2\ngpu-id=0\ncudadec-memtype=0\n[source1]\nenable=0\ntype=2\nuri=file://b.mp4\n",
    "rtsp": "[source0]\nenable=1\ntype=4\nuri=rtsp://camera/1\nlatency=200\nselect-rtp-protocol=4\nrtsp-reconnect-interval-sec=10\nsmart-record=2\nsmart-rec-cache=20\nsmart-rec-dir-path=/tmp\n[source1]\nenable=1\ntype=2\nuri=file://b.mp4\ndrop-frame-interval=2\n",
    "usb": "[source0]\nenable=1\ntype=1\ncamera-width=640\ncamera-height=480\ncamera-fps-n=30\ncamera-fps-d=1\ncamera-v4l2-dev-node=0\n[source1]\nenable=1\ntype=5\ncamera-csi-sensor-id=0\n",
    "list": "[source-list]\nnum-source-bins=2\nlist=file://a.mp4;rtsp://camera/2\nsensor-id-list=a;b\nsensor-name-list=gate;yard\nuse-nvmultiurisrcbin=1\nmax-batch-size=4\nhttp-ip=localhost\nhttp-port=9000\n[source-attr-all]\nenable=1\ntype=3\nnum-sources=1\nlatency=100\nrtsp-reconnect-interval-sec=0\n",
}
MUX = {
    "3.0": "[streammux]\nlive-source=0\nbatch-size=2\nbatched-push-timeout=40000\nwidth=1280\nheight=720\ncuda-memory-type=0\n",
    "6.0": "[streammux]\ngpu-id=0\nbatch-size=2\nbatched-push-timeout=40000\nwidth=1920\nheight=1080\nenable-padding=1\nnvbuf-memory-type=0\nattach-sys-ts-as-ntp=1\nconfig-file=mux.txt\n",
    "9.1": "[streammux]\ngpu-id=0\nlive-source=1\nbatch-size=2\nbatched-push-timeout=33333\nwidth=1920\nheight=1080\nsync-inputs-ntp=1000\nconfig-file-path=mux.txt\ndrop-backward-sei=1\n",
}
MODELS = {
    "one": "[primary-gie]\nenable=1\ngpu-id=0\nbatch-size=2\nbbox-border-color0=1;0;0;1\nbbox-border-color1=0;1;1;1\ninterval=0\ngie-unique-id=1\nconfig-file=p.txt\n",
    "tree": "[primary-gie]\nenable=1\ngie-unique-id=1\nconfig-file=p.txt\nlabelfile-path=l.txt\n[tracker]\nenable=1\ntracker-width=640\ntracker-height=384\nll-lib-file=/opt/nvidia/deepstream/deepstream/lib/libnvds_nvmultiobjecttracker.so\nll-config-file=t.yml\n[secondary-gie0]\nenable=1\ngie-unique-id=4\noperate-on-gie-id=1\noperate-on-class-ids=0;\nconfig-file=s.txt\n[secondary-gie1]\nenable=0\nconfig-file=r.txt\n",
    "prepared": "[pre-process]\nenable=1\nconfig-file=pre.txt\n[primary-gie]\nenable=1\ngie-unique-id=1\ninput-tensor-meta=1\nconfig-file=p.txt\n[nvds-analytics]\nenable=1\nconfig-file=a.txt\n",
    "triton": "[primary-gie]\nenable=1\nplugin-type=1\ngie-unique-id=1\nconfig-file=triton.txt\ninfer-raw-output-dir=/tmp\n",
}
SINKS = {
    "window": "[tiled-display]\nenable=1\nrows=1\ncolumns=2\nwidth=1280\nheight=720\n[osd]\nenable=1\nborder-width=1\ntext-size=15\ntext-color=1;1;1;1;\nshow-clock=0\nclock-x-offset=800\n[sink0]\nenable=1\ntype=2\nsync=1\nsource-id=0\n[sink1]\nenable=1\ntype=3\ncontainer=1\ncodec=1\nenc-type=0\nbitrate=2000000\nprofile=0\noutput-file=out.mp4\nsource-id=0\n[sink2]\nenable=1\ntype=4\ncodec=1\nrtsp-port=8554\nudp-port=5400\n",
    "split": "[tiled-display]\nenable=0\n[osd]\nenable=1\nprocess-mode=0\n[sink0]\nenable=1\ntype=3\ncodec=2\ncontainer=2\noutput-file=a.mkv\nsource-id=0\n[sink1]\nenable=1\ntype=3\ncodec=3\noutput-file=b.mp4\nsource-id=1\n",
    "broker": "[message-converter]\nenable=1\nmsg-conv-config=c.txt\nmsg-conv-payload-type=1\n[message-consumer0]\nenable=1\nproto-lib=libnvds_kafka_proto.so\nconn-str=h;9092\nsubscribe-topic-list=t\n[sink0]\nenable=1\ntype=6\nmsg-conv-config=c.txt\nmsg-conv-payload-type=0\nmsg-broker-proto-lib=/opt/nvidia/deepstream/deepstream/lib/libnvds_kafka_proto.so\nmsg-broker-conn-str=h;9092;t\ntopic=t\n[sink1]\nenable=1\ntype=6\nmsg-broker-proto-lib=/opt/nvidia/deepstream/deepstream/lib/libnvds_azure_edge_proto.so\ntopic=mytopic\n[sink2]\nenable=1\ntype=1\nsync=0\n[img-save]\nenable=1\noutput-folder-path=./output\nsave-img-full-frame=0\nsave-img-cropped-obj=1\nframe-to-skip-rules-path=rules.csv\n[tests]\nfile-loop=1\n",
}
FORMS = [
    (
        f"{release}-{source}-{model}-{sink}",
        APPLICATION[release] + SOURCES[source] + mux + MODELS[model] + SINKS[sink],
    )
    for (release, mux), source, model, sink in product(
        zip(APPLICATION, MUX.values(), strict=True), SOURCES, MODELS, SINKS
    )
]


def yaml_of(text: str) -> str:
    """Write the same groups in the YAML form; sources come from a table."""
    lines, skipped = ["source:", "  csv-file-path: sources.csv"], False
    for line in text.splitlines():
        if line.startswith("["):
            skipped = line.startswith("[source")
            if not skipped:
                lines.append(f"{line[1:-1]}:")
        elif not skipped:
            key, _, value = line.partition("=")
            lines.append(f"  {key}: {value}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("name", "text"), thinned(FORMS, 5), ids=[name for name, _ in FORMS])
@pytest.mark.parametrize("form", ["txt", "yml"])
def test_a_form_loads(tmp_path: Path, name: str, text: str, form: str) -> None:
    path = tmp_path / f"app.{form}"
    (tmp_path / "sources.csv").write_text(
        "enable,type,uri,num-sources\n1,2,a.mp4,1\n1,4,rtsp://c/1,1\n"
    )
    path.write_text(text if form == "txt" else yaml_of(text))
    spec = load_pipeline(path)
    codes = {notice.code for notice in spec.notices}
    assert spec.sources
    assert len(spec.models) == (2 if "tree" in name else 1)
    assert len(spec.sinks) >= 1
    assert "unknown-key" not in codes
    assert "unknown-group" not in codes
    if "broker" in name:  # Azure is named once, and messages come in
        left_out = [
            n.data["element"] for n in spec.notices if n.code == "element-left-out" and n.data
        ]
        assert "sink1" in left_out
        assert [c.uri for c in spec.consumers] == ["kafka://h:9092/t"]
        assert len(left_out) == len(set(left_out))
    again = tmp_path / "again.yml"
    again.write_text(spec.dump())
    assert load_pipeline(again) == spec
