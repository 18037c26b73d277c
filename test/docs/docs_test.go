package docs

import (
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loam/internal/netns"
	"loam/internal/race"
)

var update = flag.Bool("update", false, "write docs/demo.svg from the commands of the README")

func TestMain(m *testing.M) { netns.Main(m) }

// strict lists the documents in which every block must be run, or say why not. In other documents, blocks that are
// not marked "console" are ignored.
var strict = []string{"README.md", "docs/start.md", "docs/use"}

// TestCommands runs the commands of every document of the tree.
func TestCommands(t *testing.T) {
	netns.Need(t)
	if race.Enabled {
		t.Skip("the commands are built without the race detector")
	}
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Fatalf("ip link set lo up: %v\n%s", err, out)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	names, err := documents(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		source, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		blocks := parse(string(source))
		if isStrict(name) {
			for _, b := range blocks {
				if b.kind == other && b.reason == "" {
					t.Errorf("%s:%d: mark the block as console, text or file=NAME, or say why it is not run", name, b.line)
				}
			}
		}
		if slices.ContainsFunc(blocks, func(b block) bool { return b.kind == commands || b.kind == server }) {
			t.Run(name, func(t *testing.T) {
				shown := runDocument(t, root, name, blocks)
				if name == "README.md" && *update {
					writePicture(t, filepath.Join(root, "docs/demo.svg"), shown)
				}
			})
		}
	}
}

// documents returns the README and the documents below docs, except decisions.
func documents(root string) ([]string, error) {
	all := []string{"README.md"}
	err := fs.WalkDir(os.DirFS(root), "docs", func(p string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(p, ".md") && !strings.HasPrefix(p, "docs/decisions/") {
			all = append(all, p)
		}
		return err
	})
	return all, err
}

func isStrict(name string) bool {
	return slices.ContainsFunc(strict, func(s string) bool { return name == s || strings.HasPrefix(name, s+"/") })
}

// runDocument runs the blocks of one document in order, and stops at the first failure. It returns what a
// user sees at the terminal.
func runDocument(t *testing.T, root, name string, blocks []block) (shown []string) {
	s := newShell(t, root)
	for _, b := range blocks {
		if b.after {
			s.endServer()
		}
		switch b.kind {
		case file:
			s.run("mkdir -p $(dirname " + b.file + "); cat >" + b.file + " <<'LOAM_DOCS_END'\n" + b.text + "LOAM_DOCS_END")
		case commands, server:
			list, err := parseCommands(b.line+1, b.text)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, c := range list {
				if b.kind == server {
					err = s.start(c)
				} else {
					err = s.check(c)
				}
				if err != nil {
					t.Fatalf("%s:%d: %v", name, c.line, err)
				}
			}
		}
	}
	return s.shown
}
