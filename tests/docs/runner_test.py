"""The runner of snippets finds what a page must not have."""
import os
import pathlib
import unittest
from unittest import mock

import pages
import run_snippets


class Blocks(unittest.TestCase):
    def test_tags_and_text(self):
        blocks = pages.blocks_of("Run\n\n```sh cpu\ngridclock list\n```\n\n- item\n  ```text cpu\n  square\n  ```\n")
        self.assertEqual([(b.line, b.language, b.kind, b.text) for b in blocks],
                         [(3, "sh", "cpu", "gridclock list\n"), (8, "text", "cpu", "square\n")])

    def test_a_longer_fence_holds_a_shorter_one(self):
        blocks = pages.blocks_of("````md cpu\n```sh\n```\n````\n")
        self.assertEqual([b.text for b in blocks], ["```sh\n```\n"])

    def test_unclosed(self):
        with self.assertRaisesRegex(ValueError, "line 2: the fence is never closed"):
            pages.blocks_of("\n```sh cpu\nls\n")

    def test_untagged(self):
        blocks = pages.blocks_of("```\nx\n```\n```sh\nls\n```\n```sh cpu\nls\n```\n")
        self.assertEqual([line for line, _ in pages.untagged(blocks)], [1, 4])

    def test_output_needs_a_command(self):
        early = pages.blocks_of("```text cpu\nx\n```\n```sh cpu\nls\n```\n")
        late = pages.blocks_of("```sh cpu\nls\n```\n```text cpu\nx\n```\n")
        self.assertEqual([line for line, _ in pages.orphans(early)], [1])
        self.assertEqual(list(pages.orphans(late)), [])

    def test_metrics_keep_their_counts(self):
        self.assertEqual(run_snippets.metrics_in('gridclock_runs_total{kernel="sum"} 2\nother\n'
                                                 'gridclock_kernel_duration_seconds_sum{kernel="sum"} 0.3\n'),
                         ['gridclock_runs_total{kernel="sum"} 2',
                          'gridclock_kernel_duration_seconds_sum{kernel="sum"}'])

    def test_outputs_are_put_where_the_page_shows_them(self):
        text = "```sh cpu\nls\n```\n\n```text cpu\nold\nolder\n```\nMore.\n```sh cpu\nls\n```\n```text cpu\n```\n"
        _, first, _, second = pages.blocks_of(text)
        self.assertEqual(run_snippets.with_outputs(text, [(first, "new\n"), (second, "also\n")]),
                         "```sh cpu\nls\n```\n\n```text cpu\nnew\n```\nMore.\n```sh cpu\nls\n```\n```text cpu\nalso\n```\n")

    def test_links(self):
        page = pathlib.Path(__file__)
        text = "[a](pages.py) [b](none.md) [c](https://example.com/x) [d](#here)\n```sh cpu\n[e](no.md)\n```\n"
        self.assertEqual(list(pages.dead_links(page, text)), ["none.md"])


class Stranger(unittest.TestCase):
    def test_only_the_lines_to_paste_are_pasted(self):
        said = "\n== Gridclock listens\nexport PATH=/a/b:\"$PATH\"\n   gridclock list\nexport GRIDCLOCK_SERVER=x:1\n"
        self.assertEqual(run_snippets.exports_in(said), 'export PATH=/a/b:"$PATH"\nexport GRIDCLOCK_SERVER=x:1\n')

    def test_the_environment_has_nothing_of_ours(self):
        with mock.patch.dict(os.environ, {"PATH": "/ours", "GRIDCLOCK_SERVER": "x:1", "PYTHONPATH": "/ours"}):
            got = run_snippets.environment_of(pathlib.Path("/state"))
        self.assertNotIn("/ours", got.values())
        self.assertNotIn("GRIDCLOCK_SERVER", got)

    def test_each_kind_runs_its_own_blocks(self):
        blocks = pages.blocks_of("```sh cpu\nls\n```\n```sh gpu\n./dev gpu-test\n```\n```sh gpu\nncu ls\n```\n"
                                 "```text gpu\nx\n```\n")
        self.assertEqual([b.text for b in run_snippets.runnable_in("docs/gpus.md", blocks, "cpu")], ["ls\n"])
        self.assertEqual([b.text for b in run_snippets.runnable_in("docs/gpus.md", blocks, "gpu")], ["ncu ls\n"])

    def test_the_toolkit_is_the_last_on_the_path(self):
        got = run_snippets.environment_of(pathlib.Path("/state"), ["/toolkit"])
        self.assertEqual(got["PATH"], "/usr/local/bin:/usr/bin:/bin:/toolkit")

    def test_an_exception_that_fits_no_block(self):
        blocks = pages.blocks_of("```sh cpu\n./dev test\n```\n")
        self.assertEqual(run_snippets.unused_exceptions("CONTRIBUTING.md", blocks), [])
        self.assertEqual(len(run_snippets.unused_exceptions("CONTRIBUTING.md", [])), 1)


if __name__ == "__main__":
    unittest.main()
