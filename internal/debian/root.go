package debian

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// MakeRoot runs a shell script that creates the image of a root folder. The arguments of the script are the path of a
// temporary folder, the path of the image, and args. The script runs in namespaces of its own, so that its processes
// end with it. The image gets its final name when it is complete. The caller must be root.
func MakeRoot(ctx context.Context, name, script string, args ...string) error {
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(dir, "root-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	root, made := filepath.Join(work, "root"), filepath.Join(work, "image")
	cmd := exec.CommandContext(ctx, "unshare", append([]string{"--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child",
		"sh", "-c", script, "root.sh", root, made}, args...)...)
	cmd.Env = append(cmd.Environ(), "TMPDIR=/tmp") // another folder may be absent in the root folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the root folder: %w\n%s", err, out)
	}
	return os.Rename(made, name)
}
