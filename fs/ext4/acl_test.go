package ext4_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/block"
	"loam/block/fault"
	"loam/fs"
	"loam/fs/acl"
	"loam/fs/ext4"
)

// Access control lists on disks that Linux's tools have written, and the other way round.

// aclOf returns the value of the attribute with a list for u::rwx, u:1000:perm, g::r-x, m::rwx, o::---, with extra entries for groups.
func aclOf(perm uint16, groups int) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 2)
	add := func(tag, permissions uint16, id uint32) {
		b = binary.LittleEndian.AppendUint16(b, tag)
		b = binary.LittleEndian.AppendUint16(b, permissions)
		b = binary.LittleEndian.AppendUint32(b, id)
	}
	add(1, 7, ^uint32(0))
	add(2, perm, 1000)
	add(4, 5, ^uint32(0))
	for i := range groups {
		add(8, 1, uint32(i+1))
	}
	add(0x10, 7, ^uint32(0))
	add(0x20, 0, ^uint32(0))
	return b
}

// viewAs returns a view of the file system as a user sees it.
func viewAs(s fs.FileSystem, uid uint32) *fs.View {
	v := newView(s)
	v.Who = fs.Credentials{UID: uid, GID: uid}
	return v
}

func lookup(t *testing.T, v *fs.View, path string) fs.Place {
	t.Helper()
	p, err := v.Lookup(v.Root, path, true)
	must(t, err)
	return p
}

// wantOpen fails the test unless opening a file for reading and writing returns an error.
func wantOpen(t *testing.T, v *fs.View, path string, want error) {
	t.Helper()
	f, err := v.Open(v.Root, path, fs.ReadWrite, 0)
	if err == nil {
		f.Close()
	}
	if err != want {
		t.Errorf("user %d opens %s: %v, want %v", v.Who.UID, path, err, want)
	}
}

// Lists that mke2fs and debugfs have written are obeyed.
func TestForeignACL(t *testing.T) {
	source, value := t.TempDir(), filepath.Join(t.TempDir(), "value")
	must(t, os.Mkdir(source+"/d", 0o700))
	must(t, os.WriteFile(source+"/d/f", []byte("x"), 0o600))
	must(t, os.WriteFile(source+"/g", []byte("x"), 0o600))
	for path, list := range map[string][]byte{"/d": aclOf(1, 0), "/d/f": aclOf(6, 20)} {
		if err := syscall.Setxattr(source+path, acl.Access, list, 0); err != nil {
			t.Skipf("the host's file system has no access control lists: %v", err)
		}
	}
	path := makeImage(t, "32M", "-d", source)
	must(t, os.WriteFile(value, aclOf(7, 1), 0o600))
	if out, err := tool(t, "debugfs", "-w", "-R", "ea_set -f "+value+" /g "+acl.Access, path); err != nil || strings.Contains(out, "ea_set:") {
		t.Fatalf("debugfs: %v\n%s", err, out)
	}
	d := loadImage(t, path)
	s := mount(t, d, ext4.Config{})
	v := newView(s)
	for path, list := range map[string][]byte{"/d": aclOf(1, 0), "/d/f": aclOf(6, 20), "/g": aclOf(7, 1)} {
		if got, err := v.Xattr(lookup(t, v, path), acl.Access); err != nil || string(got) != string(list) {
			t.Errorf("%s: %x, %v; want %x", path, got, err, list)
		}
	}
	must(t, v.Change(lookup(t, v, "/g"), fs.Change{Fields: fs.SetMode, Mode: 0o660})) // debugfs does not change the mode
	for range 2 {                                                                     // the second time, from the cache
		wantOpen(t, viewAs(s, 1000), "/d/f", nil)
		wantOpen(t, viewAs(s, 1000), "/g", nil)
		wantOpen(t, viewAs(s, 1001), "/d/f", linux.EACCES)
		wantOpen(t, viewAs(s, 1001), "/g", linux.EACCES)
	}
	must(t, s.Close())
	check(t, d)
}

// A list on a directory that is in the cache of names is obeyed as soon as it is set.
func TestACLOfCachedDirectory(t *testing.T) {
	s := mount(t, loadImage(t, makeImage(t, "16M")), ext4.Config{})
	defer s.Close()
	root, user := newView(s), viewAs(s, 1000)
	must(t, root.Mkdir(root.Root, "/d", 0o755))
	write(t, root, "/d/f", 0o666)
	must(t, root.Change(lookup(t, root, "/d/f"), fs.Change{Fields: fs.SetMode, Mode: 0o666}))
	for range 3 {
		wantOpen(t, user, "/d/f", nil)
		must(t, root.SetXattr(lookup(t, root, "/d"), acl.Access, aclOf(0, 0), 0))
		wantOpen(t, user, "/d/f", linux.EACCES)
		if _, err := user.Lookup(user.Root, "/d/absent", true); err != linux.EACCES {
			t.Errorf("an absent file: %v", err)
		}
		must(t, root.Change(lookup(t, root, "/d"), fs.Change{Fields: fs.SetMode, Mode: 0o755}))
		must(t, root.SetXattr(lookup(t, root, "/d"), acl.Access, aclOf(1, 0), 0))
		wantOpen(t, user, "/d/f", nil)
		wantOpen(t, viewAs(s, 1001), "/d/f", linux.EACCES)
		must(t, root.RemoveXattr(lookup(t, root, "/d"), acl.Access))
		must(t, root.Change(lookup(t, root, "/d"), fs.Change{Fields: fs.SetMode, Mode: 0o755}))
	}
}

func write(t *testing.T, v *fs.View, path string, mode fs.Mode) {
	t.Helper()
	f, err := v.Open(v.Root, path, fs.ReadWrite|fs.Create, mode)
	must(t, err)
	must(t, f.Close())
}

// A list that is damaged gives no permission, and a change of the mode leaves it as it is.
func TestDamagedACL(t *testing.T) {
	path, value := makeImage(t, "16M"), filepath.Join(t.TempDir(), "value")
	must(t, os.WriteFile(value, []byte("x"), 0o600))
	damaged := filepath.Join(t.TempDir(), "list")
	must(t, os.WriteFile(damaged, aclOf(7, 0)[:12], 0o600)) // only the entry of the owner
	for _, request := range []string{"write " + value + " f", "ea_set -f " + damaged + " /f " + acl.Access, "set_inode_field /f mode 0100660"} {
		if out, err := tool(t, "debugfs", "-w", "-R", request, path); err != nil {
			t.Fatalf("debugfs: %v\n%s", err, out)
		}
	}
	s := mount(t, loadImage(t, path), ext4.Config{})
	defer s.Close()
	v := newView(s)
	for range 2 {
		if _, err := v.Xattr(lookup(t, v, "/f"), acl.Access); err != linux.EIO {
			t.Errorf("reading the list: %v", err)
		}
		wantOpen(t, viewAs(s, 1000), "/f", linux.EACCES)
		wantOpen(t, v, "/f", nil)
		must(t, v.Change(lookup(t, v, "/f"), fs.Change{Fields: fs.SetMode, Mode: 0o666}))
	}
	must(t, v.Change(lookup(t, v, "/f"), fs.Change{Fields: fs.SetMode, Mode: 0o606}))
	wantOpen(t, viewAs(s, 1000), "/f", nil) // without permission bits of the group, the list has no effect, as on Linux
	must(t, v.SetXattr(lookup(t, v, "/f"), acl.Access, aclOf(6, 0), 0))
	wantOpen(t, viewAs(s, 1000), "/f", nil)
}

// If the device fails to read a list, the file gives no permission, and its mode cannot be changed. Both work again as soon as the
// device can read the list.
func TestACLAfterReadError(t *testing.T) {
	d := loadImage(t, makeImage(t, "32M"))
	s := mount(t, d, ext4.Config{})
	v := newView(s)
	write(t, v, "/f", 0o600)
	must(t, v.SetXattr(lookup(t, v, "/f"), acl.Access, aclOf(6, 50), 0))
	must(t, s.Close())
	out, err := tool(t, "debugfs", "-R", "stat /f", saveImage(t, d))
	m := regexp.MustCompile(`File ACL: (\d+)`).FindStringSubmatch(out)
	if err != nil || m == nil || m[1] == "0" {
		t.Fatalf("debugfs: %v\n%s", err, out)
	}
	number, err := strconv.ParseInt(m[1], 10, 64)
	must(t, err)
	size := int64(v.Root.Node.Attr().BlockSize)
	rule := fault.Rule{Ops: []block.Op{block.Read}, From: number * size, To: (number + 1) * size, Times: 4}
	bad := fault.New(d, fault.Config{Rules: []fault.Rule{rule}})
	defer bad.Close()
	s = mount(t, bad, ext4.Config{})
	v = newView(s)
	p := lookup(t, v, "/f")
	for range 10 { // each attempt reads the block
		if p.Node.Attr().ACL.Lists().Access != acl.Unreadable {
			break
		}
		if err := p.Node.Change(fs.Change{Fields: fs.SetMode, Mode: 0o640}); err != linux.EIO && bad.Counts().Failed < 4 {
			t.Errorf("chmod: %v", err)
		}
	}
	if n := bad.Counts().Failed; n != 4 {
		t.Errorf("%d reads have failed", n)
	}
	wantOpen(t, viewAs(s, 1000), "/f", nil)
	must(t, s.Close())
	check(t, d)
}

// withLists creates files with lists: in the inode and in a block, set and inherited.
func withLists(t *testing.T, s fs.FileSystem) map[string][]byte {
	v := newView(s)
	must(t, v.Mkdir(v.Root, "/d", 0o755))
	must(t, v.SetXattr(lookup(t, v, "/d"), acl.Default, aclOf(7, 0), 0))
	write(t, v, "/d/inherited", 0o660)
	must(t, v.Mkdir(v.Root, "/d/sub", 0o770))
	write(t, v, "/small", 0o600)
	write(t, v, "/large", 0o600)
	must(t, v.SetXattr(lookup(t, v, "/small"), acl.Access, aclOf(6, 0), 0))
	must(t, v.SetXattr(lookup(t, v, "/large"), "user.n", []byte("v"), 0))
	must(t, v.SetXattr(lookup(t, v, "/large"), acl.Access, aclOf(6, 100), 0))
	must(t, v.Change(lookup(t, v, "/large"), fs.Change{Fields: fs.SetMode, Mode: 0o640}))
	lists := map[string][]byte{}
	for _, path := range []string{"/d/inherited", "/d/sub", "/small", "/large"} {
		value, err := v.Xattr(lookup(t, v, path), acl.Access)
		must(t, err)
		lists[path] = value
	}
	return lists
}

// debugfs reads the lists that this package has written, and e2fsck finds no fault.
func TestACLForDebugfs(t *testing.T) {
	for _, args := range []string{"", "-I 128", "-b 1024"} {
		d := loadImage(t, makeImage(t, "32M", strings.Fields(args)...))
		s := mount(t, d, ext4.Config{})
		lists := withLists(t, s)
		must(t, s.Close())
		check(t, d)
		image, out := saveImage(t, d), filepath.Join(t.TempDir(), "out")
		for path, want := range lists {
			if text, err := tool(t, "debugfs", "-R", "ea_get -f "+out+" "+path+" "+acl.Access, image); err != nil {
				t.Fatalf("debugfs: %v\n%s", err, text)
			}
			got, err := os.ReadFile(out)
			must(t, err)
			a, err := acl.Parse(got) // debugfs gives IDs to entries that have none
			if b, _ := acl.Parse(want); err != nil || a != b {
				t.Errorf("%s: %x, %v; want %x", path, got, err, want)
			}
		}
	}
}

// aclScript mounts $IMAGE, copies the tree with its lists to $OUT, and creates files that inherit lists. It prints what user 1000 may
// write.
const aclScript = `set -e
umask 077
mount -t ext4 -o loop "$IMAGE" "$MOUNT"
cp -a "$MOUNT/." "$OUT/"
: > "$MOUNT/d/linux"
mkdir "$MOUNT/d/linuxdir"
cd "$MOUNT"
for f in d/inherited d/sub small large; do
	setpriv --reuid 1000 --regid 1000 --clear-groups test -w $f && echo $f
done
cd /
umount "$MOUNT"`

// Linux obeys the lists that this package has written, and gives its files lists that are the same here.
func TestACLOnLinux(t *testing.T) {
	needsMounts(t)
	d := loadImage(t, makeImage(t, "48M"))
	s := mount(t, d, ext4.Config{Interval: time.Hour})
	lists := withLists(t, s)
	must(t, s.Sync())
	image, dir := saveImage(t, d), t.TempDir() // s is not closed, so Linux recovers the journal
	var writable []string
	for _, path := range []string{"d/inherited", "d/sub", "small", "large"} {
		if v := viewAs(s, 1000); v.Access(lookup(t, v, "/"+path), fs.ToWrite) == nil {
			writable = append(writable, path)
		}
	}
	must(t, s.Close())
	for _, name := range []string{"mount", "out"} {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	cmd := exec.Command("unshare", "-m", "sh", "-c", aclScript)
	cmd.Env = append(os.Environ(), "IMAGE="+image, "MOUNT="+dir+"/mount", "OUT="+dir+"/out")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("Linux: %v\n%s", err, out)
	}
	if got := strings.Fields(string(out)); strings.Join(got, " ") != strings.Join(writable, " ") || len(got) == 0 || len(got) == 4 {
		t.Errorf("on Linux, user 1000 may write %q; here %q", got, writable)
	}
	for path, want := range lists {
		got := make([]byte, 4096)
		n, err := syscall.Getxattr(dir+"/out"+path, acl.Access, got)
		if err != nil || string(got[:n]) != string(want) {
			t.Errorf("Linux reads %s: %x, %v; want %x", path, got[:max(n, 0)], err, want)
		}
	}
	sameAsLinux(t, loadImage(t, image))
}

// sameAsLinux compares files that Linux has created in a directory with a default list with files that are created here.
func sameAsLinux(t *testing.T, d block.Device) {
	s := mount(t, d, ext4.Config{})
	v := newView(s)
	v.Umask = 0o077
	write(t, v, "/d/loam", 0o666)
	must(t, v.Mkdir(v.Root, "/d/loamdir", 0o777))
	for loam, linux := range map[string]string{"/d/loam": "/d/linux", "/d/loamdir": "/d/linuxdir"} {
		for _, name := range []string{acl.Access, acl.Default} {
			a, errA := v.Xattr(lookup(t, v, loam), name)
			b, errB := v.Xattr(lookup(t, v, linux), name)
			if string(a) != string(b) || errA != errB {
				t.Errorf("%s of %s: %x, %v; of %s: %x, %v", name, loam, a, errA, linux, b, errB)
			}
		}
		if a, b := lookup(t, v, loam).Node.Attr().Mode, lookup(t, v, linux).Node.Attr().Mode; a != b {
			t.Errorf("modes %s and %s", strconv.FormatUint(uint64(a), 8), strconv.FormatUint(uint64(b), 8))
		}
	}
	must(t, s.Close())
	check(t, d)
}
