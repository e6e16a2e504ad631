"""Hidden files and names that no module can have are left out wherever job files are looked for."""

from pathlib import Path

from tidemill.system.module_files import misnamed, module_files

STRAY = (".#click.py", "._click.py", ".ipynb_checkpoints/click-checkpoint.py", "__pycache__/click.py", "notes.txt")
MISNAMED = ("1.py", "a.b.py", "my-job.py", "my-jobs/one.py")


def test_only_what_python_can_import_counts_also_behind_links(tmp_path: Path) -> None:
    kept, linked = tmp_path / "kept", tmp_path / "linked"
    for file in (*STRAY, *MISNAMED, "click.py", "mail/__init__.py", "mail/sent.py", "plain/one.py", "é.py"):
        (kept / file).parent.mkdir(parents=True, exist_ok=True)
        (kept / file).touch()
    (linked / "deep").mkdir(parents=True)
    (linked / "deep" / "two.py").touch()
    (kept / "other").symlink_to(linked)
    # It leads back to a folder above it.
    (linked / "deep" / "again").symlink_to(kept)
    (kept / ".#unsaved.py").symlink_to("user@machine.1234")

    found = [path.relative_to(kept).as_posix() for path in module_files(kept)]

    assert found == ["click.py", "mail/__init__.py", "mail/sent.py", "other/deep/two.py", "plain/one.py", "é.py"]
    assert [path.name for path in misnamed(kept)] == ["1.py", "a.b.py", "my-job.py", "my-jobs"]
