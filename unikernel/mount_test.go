//go:build !race

package unikernel

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"loam/fs/imagefile"
)

// keptCommand returns the command that runs the program "kept" with a disk, on a platform.
func keptCommand(platform Platform, disk, what string) *exec.Cmd {
	cmd := guestCommand(NoNetwork, "kept", what)
	if platform == Machine {
		cmd = machineCommand(NoNetwork, "kept", what)
	}
	cmd.Env = append(cmd.Env, withDisks+"="+disk)
	return cmd
}

// runKept runs the program "kept", which must succeed and print want.
func runKept(t *testing.T, platform Platform, disk, what, want string) {
	t.Helper()
	out, err := keptCommand(platform, disk, what).CombinedOutput()
	if err != nil || string(out) != want {
		t.Fatalf("%s on %s, platform %v: %v: %s", what, disk, platform, err, out)
	}
}

// checkImage fails the test if e2fsck finds an error in an unmounted image.
func checkImage(t *testing.T, image string) {
	t.Helper()
	out, err := exec.Command("/usr/sbin/e2fsck", "-fn", image).CombinedOutput()
	if err != nil || strings.Contains(string(out), "recovering journal") || strings.Contains(string(out), "skipping journal recovery") {
		t.Fatalf("e2fsck -fn: %v\n%s", err, out)
	}
}

// imageFile returns the content of a file in an ext4 image.
func imageFile(t *testing.T, image, name string) string {
	t.Helper()
	out, err := exec.Command("/usr/sbin/debugfs", "-R", "cat "+name, image).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// disksOf lists the kinds of disks that are tested on each platform, as the prefix of the image's name.
var disksOf = map[Platform][]string{Process: {""}, Machine: {"", "nvme:", "ahci:"}}

// A program reads the files that an earlier program wrote to a disk, on each platform and kind of disk. The first run
// creates the image, and each run leaves it clean. A read-only image does not change. Changes to a snapshot are visible
// only to the program that makes them.
func TestMount(t *testing.T) {
	if _, err := os.Stat("/usr/sbin/e2fsck"); err != nil {
		t.Skip("e2fsprogs is not installed")
	}
	for platform, kinds := range disksOf {
		for _, kind := range kinds {
			t.Run(fmt.Sprintf("%v %s", platform, kind), func(t *testing.T) {
				image := filepath.Join(t.TempDir(), "new, image")
				runKept(t, platform, kind+image+":/data", "write", "written\n")
				checkImage(t, image)
				runKept(t, platform, kind+image+":/data", "read", "kept\n")
				checkImage(t, image)
				if kind == "ahci:" {
					return
				}
				before, err := os.ReadFile(image)
				if err != nil {
					t.Fatal(err)
				}
				runKept(t, platform, kind+image+":/data:ro", "refused", "kept\nrefused\n")
				runKept(t, platform, kind+image+":/data:snapshot", "change", "written\nkept\nchanged\n")
				if after, err := os.ReadFile(image); err != nil || !bytes.Equal(before, after) {
					t.Errorf("the image has changed: %v", err)
				}
			})
		}
	}
}

// After a signal, handled or not, and after a panic, the file system is unmounted and contains all
// files.
func TestMountEnds(t *testing.T) {
	if _, err := os.Stat("/usr/sbin/e2fsck"); err != nil {
		t.Skip("e2fsprogs is not installed")
	}
	for _, platform := range []Platform{Process, Machine} {
		for what, files := range map[string]map[string]string{
			"terminated": {"terminated": "before the signal"},
			"handled":    {"terminated": "before the signal", "handled": "after the signal"},
			"panics":     {"panicked": "before the panic"},
		} {
			t.Run(fmt.Sprintf("%v %s", platform, what), func(t *testing.T) {
				image := filepath.Join(t.TempDir(), "new")
				cmd := keptCommand(platform, image+":/data", what)
				var errors bytes.Buffer
				cmd.Stderr = &errors
				out, err := cmd.StdoutPipe()
				if err == nil {
					err = cmd.Start()
				}
				if err != nil {
					t.Fatal(err)
				}
				lines := bufio.NewScanner(out)
				if what != "panics" {
					if !lines.Scan() || lines.Text() != "ready" {
						t.Fatalf("%q: %s", lines.Text(), errors.Bytes())
					}
					cmd.Process.Signal(syscall.SIGTERM)
				}
				for lines.Scan() {
				}
				cmd.Wait()
				want := map[string]int{"terminated": 128 + int(syscall.SIGTERM), "handled": 0, "panics": 2}[what]
				if got := cmd.ProcessState.ExitCode(); got != want {
					t.Errorf("status %d, want %d: %s", got, want, errors.Bytes())
				}
				checkImage(t, image)
				for name, text := range files {
					if got := imageFile(t, image, name); got != text {
						t.Errorf("%s has %q, want %q", name, got, text)
					}
				}
			})
		}
	}
}

// rootImage creates an ext4 image of a root folder with programs of this system.
func rootImage(t *testing.T, programs ...string) string {
	t.Helper()
	if _, err := os.Stat("/usr/sbin/mke2fs"); err != nil {
		t.Skip("e2fsprogs is not installed")
	}
	image := filepath.Join(t.TempDir(), "root.img")
	out, err := exec.Command("/usr/sbin/mke2fs", "-q", "-t", "ext4", "-d", rootWith(t, programs...), image, "64M").CombinedOutput()
	if err != nil {
		t.Fatalf("mke2fs: %v: %s", err, out)
	}
	return image
}

// A Linux program can have an ext4 image as its root: programs are loaded from it, and files that they write are in it
// afterwards. Loam's own files of /etc are not written to it. A snapshot leaves the image unchanged.
func TestRootImage(t *testing.T) {
	image := rootImage(t, "/bin/bash", "/bin/cat", "/bin/mkdir", "/bin/ls", "/bin/sync")
	run := func(snapshot bool, script, want string) {
		t.Helper()
		cmd := linuxCommand("bash", "-c", script)
		cmd.Env = append(cmd.Env, withFiles+"="+image)
		if snapshot {
			cmd.Env = append(cmd.Env, withSnapshot+"=1")
		}
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != want {
			t.Fatalf("%s: %v: %s", script, err, out)
		}
	}
	run(false, `echo kept > /kept; mkdir -p /var/d; for i in 1 2 3; do echo $i; done > /var/d/f; sync; read a b c rest < /proc/mounts; echo $a $b $c; [[ -s /etc/hosts && -w /dev/null ]] && echo > /run/x && echo ok`,
		"/dev/vda / ext4\nok\n")
	checkImage(t, image)
	run(false, `cat /kept /var/d/f; ls /run`, "kept\n1\n2\n3\nlock\n")
	checkImage(t, image)
	if got := imageFile(t, image, "/etc/hosts"); got != "" {
		t.Errorf("/etc/hosts of the image has %q", got)
	}
	before, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	run(true, `echo changed > /kept; cat /kept`, "changed\n")
	if after, err := os.ReadFile(image); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the image has changed: %v", err)
	}
}

// If the host's disk is full, a commit to the image fails with EIO, the file system becomes read-only with a message,
// and the program continues. Everything that was durable is in the image.
func TestMountFails(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it mounts a small file system in a namespace of its own")
	}
	for platform, kinds := range disksOf {
		for _, kind := range kinds {
			t.Run(fmt.Sprintf("%v %s", platform, kind), func(t *testing.T) {
				dir, saved := t.TempDir(), filepath.Join(t.TempDir(), "saved")
				cmd := keptCommand(platform, kind+dir+"/new:/data", "fills")
				cmd.Args = append([]string{"unshare", "-m", "sh", "-c", `mount -t tmpfs -o size=8m none "$1" || exit 9; to=$2; shift 2; "$@"; status=$?; cp "$DIR"/new "$to"; exit $status`,
					"sh", dir, saved, cmd.Path}, cmd.Args[1:]...)
				cmd.Env = append(cmd.Env, "DIR="+dir)
				var err error
				if cmd.Path, err = exec.LookPath("unshare"); err != nil {
					t.Skip(err)
				}
				var errors bytes.Buffer
				cmd.Stderr = &errors
				out, err := cmd.Output()
				if err != nil || string(out) != "continued\n" {
					t.Fatalf("%v: %s%s", err, out, errors.Bytes())
				}
				if !strings.Contains(errors.String(), "/new: ext4: the file system is read-only from now on: ") {
					t.Errorf("messages: %s", errors.Bytes())
				}
				f, err := imagefile.Check(saved)
				if err != nil || !f.OK() {
					t.Errorf("the image: %v, %q", err, f.Problems)
				}
			})
		}
	}
}

// O_DIRECT reads and writes a disk, and a mounted file system grows: for a Go program on each platform, and for a Linux
// program. resize2fs of this host does the same.
func TestDirectAndGrow(t *testing.T) {
	image := func() string {
		name := filepath.Join(t.TempDir(), "image")
		if out, err := exec.Command("/usr/sbin/mke2fs", "-q", "-t", "ext4", name, "16M").CombinedOutput(); err != nil {
			t.Fatalf("mke2fs: %v: %s", err, out)
		}
		if err := os.Truncate(name, 48<<20); err != nil {
			t.Fatal(err)
		}
		return name
	}
	root := rootWith(t, "/usr/sbin/resize2fs")
	resize := linuxCommand("/usr/sbin/resize2fs", "/dev/vda")
	resize.Env = append(resize.Env, withFiles+"="+root)
	for name, c := range map[string]struct {
		cmd  *exec.Cmd
		want string
	}{
		"process": {guestCommand(NoNetwork, "direct"), "direct\n"}, "machine": {machineCommand(NoNetwork, "direct"), "direct\n"},
		"Linux program": {linuxCommand(onThisHost(t, "direct"), "memory"), "direct\n"}, "resize2fs": {resize, "is now 49152 (1k) blocks long."},
	} {
		image := image()
		c.cmd.Env = append(c.cmd.Env, withDisks+"="+image+":/data")
		if out, err := c.cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		checkImage(t, image)
	}
}
