package ext4_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"loam/fs/ext4"
	"loam/fs/memfs"
)

// Interoperability with Linux's own ext4. Linux recovers and reads a file system that Loam has in use, and writes to
// it. Then this package recovers and reads a file system that Linux has in use.

// linuxScript mounts $IMAGE in a temporary mount namespace, copies the tree to $OUT, makes changes in the directory
// kernel, copies them to $KERNEL, and copies the image while it is in use.
const linuxScript = `set -e
mount -t ext4 -o loop "$IMAGE" "$MOUNT"
cp -a "$MOUNT/." "$OUT/"
mkdir -p "$MOUNT/kernel/sub"
for i in $(seq 1 300); do echo "content $i" > "$MOUNT/kernel/file$i"; done
ln -s target "$MOUNT/kernel/link"
dd if=/dev/urandom of="$MOUNT/kernel/big" bs=64k count=20 status=none
sync -f "$MOUNT"
rm "$MOUNT"/kernel/file2?
sync -f "$MOUNT"
cp -a "$MOUNT/kernel" "$KERNEL"
cp "$IMAGE" "$IMAGE.live"
umount "$MOUNT"`

// needsMounts skips a test unless Linux can mount images.
func needsMounts(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("unshare", "-m", "true").CombinedOutput(); err != nil || !exists("/dev/loop-control") {
		t.Skipf("Linux cannot mount images here: %v %s", err, out)
	}
}

func TestLinux(t *testing.T) {
	needsMounts(t)
	for _, args := range []string{"", "-b 1024", "-O ^metadata_csum,^64bit", "-O orphan_file"} {
		t.Run(args, func(t *testing.T) { judgedByLinux(t, strings.Fields(args)) })
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func judgedByLinux(t *testing.T, args []string) {
	d := loadImage(t, makeImage(t, "48M", args...))
	s := mount(t, d, ext4.Config{Interval: time.Hour})
	defer s.Close()
	ours, model := newView(s), newView(memfs.New(memfs.Config{}))
	r := &random{rnd: rand.New(rand.NewPCG(77, 9))}
	for range 500 {
		r.pick()
		r.do(ours)
		r.do(model)
		if r.rnd.IntN(60) == 0 {
			must(t, s.Sync())
		}
	}
	must(t, s.Sync())
	image, dir := saveImage(t, d), t.TempDir() // s is not closed, so Linux recovers the journal
	for _, name := range []string{"mount", "out"} {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	cmd := exec.Command("unshare", "-m", "sh", "-c", linuxScript)
	cmd.Env = append(os.Environ(), "IMAGE="+image, "MOUNT="+dir+"/mount", "OUT="+dir+"/out", "KERNEL="+dir+"/kernel")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("Linux: %v\n%s", err, out)
	}
	equal(t, ours, model, "/")
	same(t, ours, "/", dir+"/out", true)
	live := loadImage(t, image+".live")
	said := ""
	s = mount(t, live, ext4.Config{Report: func(text string) { said += text }})
	same(t, newView(s), "/kernel", dir+"/kernel", true)
	must(t, s.Close())
	check(t, live)
	if !strings.Contains(said, "recovered") {
		t.Errorf("the image of Linux was in use, and nothing was recovered: %q", said)
	}
}
