//go:build linux && !race

package daemons

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// packages are the packages of Debian that the root folder has in addition to those of debootstrap's minbase.
var packages = []string{
	"nginx", "redis-server", "redis-tools", "memcached", "dnsmasq-base", "bind9-dnsutils", "apache2", "postgresql-15",
	"openssh-server", "openssh-client", "curl", "apache2-utils", "wrk", "procps", "python3",
}

// makeRoot is a script with the arguments ROOT IMAGE PACKAGES. Servers that a package would start are not started
// (policy-rc.d), and the processes of the installation end with it.
//
//go:embed testdata/root.sh
var makeRoot string

// image returns the path of the root's image, which it makes if there is none.
func image(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: debootstrap makes a root folder")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Join(packages, " ")
	sum := sha256.Sum256([]byte(makeRoot + list))
	name := filepath.Join(cache, "loam-ci", "daemons-"+hex.EncodeToString(sum[:6])+".ext4")
	if _, err := os.Stat(name); err == nil {
		return name
	}
	if err := makeImage(t.Context(), name, list); err != nil {
		t.Fatal(err)
	}
	return name
}

// makeImage creates an image. The image gets its name only when it is complete.
func makeImage(ctx context.Context, name, list string) error {
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
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child",
		"sh", "-c", makeRoot, "root.sh", root, made, list)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the root folder: %w\n%s", err, out)
	}
	return os.Rename(made, name)
}
