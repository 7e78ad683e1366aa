"""Generate arion_tds/pb from proto/, offline: envoy's descriptors come from the installed xds-protos package.

Called by `make proto` (writes) and `make check` (`--check`: compares and fails when the committed files are stale).
"""

import pathlib
import subprocess
import sys
import tempfile

from envoy.config.core.v3 import base_pb2
from envoy.config.route.v3 import route_components_pb2
from google.protobuf import descriptor, descriptor_pb2, duration_pb2

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROTO = "proto/arion/extensions/filters/http/mcp/mcp_gateway/v3"
PB = "arion_tds/pb"


def descriptor_set() -> bytes:
    """All descriptors that our proto imports, transitively, dependencies first."""
    out = descriptor_pb2.FileDescriptorSet()
    seen: set[str] = set()

    def add(file: descriptor.FileDescriptor) -> None:
        if file.name in seen:
            return
        seen.add(file.name)
        for dependency in file.dependencies:
            add(dependency)
        out.file.add().ParseFromString(file.serialized_pb)

    for module in (base_pb2, route_components_pb2, duration_pb2):
        add(module.DESCRIPTOR)
    return out.SerializeToString()


def generate(into: pathlib.Path) -> None:
    """Run protoc; the virtual path `arion_tds/pb` becomes the Python package."""
    with tempfile.TemporaryDirectory() as scratch:
        fds = pathlib.Path(scratch) / "envoy.fds"
        fds.write_bytes(descriptor_set())
        subprocess.run(
            [
                sys.executable,
                "-m",
                "grpc_tools.protoc",
                f"-I{PB}={PROTO}",
                f"--descriptor_set_in={fds}",
                f"--python_out={into}",
                f"--pyi_out={into}",
                f"{PB}/mcp_gateway.proto",
            ],
            cwd=ROOT,
            check=True,
        )


def main() -> int:
    """Write the files, or with `--check` compare them with the committed ones."""
    if "--check" not in sys.argv:
        generate(ROOT)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        into = pathlib.Path(scratch)
        generate(into)
        for made in sorted((into / PB).iterdir()):
            if (ROOT / PB / made.name).read_bytes() != made.read_bytes():
                print(f"{PB}/{made.name} is stale: run `make proto`", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
