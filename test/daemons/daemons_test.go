//go:build linux && !race

package daemons

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	seconds  = flag.Int("seconds", 2, "how long each load lasts")
	cpus     = flag.Int("cpus", 2, "CPUs of the machines")
	run      = flag.Bool("daemons", false, "run the test; its root takes some minutes to install, and 1.2 GB")
	writable = flag.Bool("writable", false, "run each server on a copy of the image that it changes, in place of a snapshot in memory")
	onLinux  = flag.Bool("linux", false, "run the scripts on this Linux, in namespaces of their own")
)

// servers are the names of the servers, each of which has a script in testdata.
var servers = []string{"nginx", "postgresql", "redis", "memcached", "dnsmasq", "apache", "ssh"}

// patience returns the longest time of a test. It is long enough for a busy host and twelve loads, the most that a
// script has.
func patience() time.Duration { return 10*time.Minute + 20*time.Duration(*seconds)*time.Second }

// Each server starts, serves its clients without an error, carries out an operator's commands, leaks no descriptor, and
// ends.
func TestServers(t *testing.T) {
	if !*run {
		t.Skip("-daemons is not given")
	}
	root, scripts := image(t), scriptFolder(t)
	loam := ""
	if !*onLinux {
		loam = buildLoam(t)
	}
	for _, name := range servers {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience())
			defer cancel()
			var cmd *exec.Cmd
			if *onLinux {
				cmd = linuxCommand(ctx, root, scripts, name, *seconds)
			} else {
				cmd = onLoam(ctx, loam, changeable(t, root), scripts, name, *seconds)
			}
			out, err := cmd.CombinedOutput()
			if err != nil || bytes.Contains(out, []byte("\nFAIL")) || !bytes.HasSuffix(out, []byte("\ndone\n")) {
				t.Errorf("%v\n%s", err, out)
				return
			}
			t.Logf("%s", out)
		})
	}
}

func buildLoam(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "loam")
	if out, err := exec.Command("go", "build", "-o", bin, "loam/cmd/loam").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// scriptFolder returns a folder with the scripts that the user of the emulator may read.
func scriptFolder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// changeable returns a copy of the image with -writable, and otherwise the root itself, whose changes are kept in memory.
func changeable(t *testing.T, root string) string {
	t.Helper()
	if !*writable || !strings.HasSuffix(root, ".ext4") {
		return root
	}
	copied := filepath.Join(t.TempDir(), "root.ext4")
	copyImage(t, root, copied)
	return copied
}

func onLoam(ctx context.Context, loam, root, scripts, name string, seconds int) *exec.Cmd {
	args := []string{"run", "--platform", "vm", "--net", "none", "--root", root, "-m", "1G",
		"--cpus", strconv.Itoa(*cpus), "-v", scripts + ":/scripts", "/bin/bash", "--", "/scripts/" + name + ".sh", strconv.Itoa(seconds)}
	if strings.HasSuffix(root, ".ext4") && !*writable {
		args = slices.Insert(args, 1, "-o", "snapshot")
	}
	cmd := exec.CommandContext(ctx, loam, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	return cmd
}

// inNamespaces mounts the image or the folder, with changes in memory, and runs a script there: IMAGE SCRIPTS COMMAND. The mounts end with
// their namespace.
var inNamespaces = strings.TrimSpace(`
set -e
mount -t tmpfs none /mnt
mkdir /mnt/image /mnt/upper /mnt/work /mnt/root
if [ -d "$1" ]; then mount --bind "$1" /mnt/image; else mount -o loop,ro "$1" /mnt/image; fi
mount -t overlay overlay -o lowerdir=/mnt/image,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
cd /mnt/root
mkdir -p dev/shm dev/pts
mount -t proc proc proc
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t devpts devpts dev/pts -o newinstance,ptmxmode=666
ln -sf pts/ptmx dev/ptmx
for d in null zero; do [ -e dev/$d ] || { touch dev/$d; mount --bind /dev/$d dev/$d; }; done
[ -e dev/fd ] || ln -s /proc/self/fd dev/fd
mkdir -p scripts
mount --bind "$2" scripts
ip link set lo up
shift 2
exec chroot . "$@"
`)

func linuxCommand(ctx context.Context, root, scripts, name string, seconds int) *exec.Cmd {
	return exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--ipc", "--uts", "--net", "--fork", "--kill-child",
		"sh", "-c", inNamespaces, "sh", root, scripts, "/bin/bash", "/scripts/"+name+".sh", strconv.Itoa(seconds))
}
