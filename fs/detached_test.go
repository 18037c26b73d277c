package fs_test

import (
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
)

// A detached mount is a tree of its own until it is attached. An attached mount moves with the mounts inside it.
func TestMove(t *testing.T) {
	v, at := mountTest(t)
	tree := v.Tree
	root := tree.Detached(fs.Mounted{Kind: "tmpfs"}, memfs.New(memfs.Config{}))
	for _, dir := range []string{"x", "x/y"} {
		if err := v.Mkdir(root, dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := v.Lookup(root, "x/../..", true); err != nil || p != root {
		t.Errorf("above the root of the mount: %v, %v", p, err)
	}
	x, _ := v.Lookup(root, "x", true)
	sameErrors(t, map[string][2]error{
		"no root":        {tree.Move(x, at("/a"), "/a"), linux.EINVAL},
		"on a file":      {tree.Move(root, at("/a/f"), "/a/f"), linux.EINVAL},
		"a system mount": {tree.Move(tree.Root(), at("/a"), "/a"), linux.EINVAL},
		"in itself":      {tree.Move(root, x, "/x"), linux.ELOOP},
		"attach":         {tree.Move(root, at("/a"), "/a"), nil},
	})
	covered := at("/m")
	again := tree.Detached(fs.Mounted{Kind: "tmpfs"}, memfs.New(memfs.Config{}))
	sameErrors(t, map[string][2]error{
		"cover":                  {tree.Move(again, covered, "/m"), nil},
		"the place it covers":    {tree.Move(again, covered, "/m"), linux.ELOOP},
		"uncover":                {tree.Unmount(again), nil},
		"flags of an old mount":  {tree.SetFlags(again, false, func(f fs.MountFlags) fs.MountFlags { return f }), linux.EINVAL},
		"in a mount without use": {tree.Move(root, again, "/"), linux.EINVAL},
	})
	inner := tree.Detached(fs.Mounted{Kind: "tmpfs"}, memfs.New(memfs.Config{}))
	sameErrors(t, map[string][2]error{
		"inside":                {tree.Move(inner, at("/a/x"), "/a/x"), nil},
		"in a mount inside it":  {tree.Move(root, at("/a/x"), "/a/x"), linux.ELOOP},
		"in an unattached tree": {tree.Move(inner, tree.Detached(fs.Mounted{}, memfs.New(memfs.Config{})), "/"), linux.EINVAL},
		"to another place":      {tree.Move(at("/a"), at("/m"), "/m"), nil},
	})
	if path, err := v.Path(at("/m/x")); err != nil || path != "/m/x" || at("/m/x") != inner {
		t.Errorf("the mount inside: %q, %v", path, err)
	}
	if _, err := v.Lookup(v.Root, "/a/f", true); err != nil {
		t.Errorf("what was hidden: %v", err)
	}
	made := tree.Mounted()
	if len(made) != 2 || made[0].Path != "/m" || made[1].Path != "/m/x" {
		t.Errorf("mounts: %+v", made)
	}
	set := func(f fs.MountFlags) fs.MountFlags { return f | fs.ReadOnlyMount }
	sameErrors(t, map[string][2]error{
		"flags of no mount":  {tree.SetFlags(x, false, set), linux.EINVAL},
		"flags of all":       {tree.SetFlags(at("/m"), true, set), nil},
		"the mount inside":   {v.Mkdir(v.Root, "/m/x/z", 0o755), linux.EROFS},
		"another mount":      {v.Mkdir(v.Root, "/z", 0o755), nil},
		"busy":               {tree.Unmount(at("/m")), linux.EBUSY},
		"unmount the inside": {tree.Unmount(at("/m/x")), nil},
		"unmount":            {tree.Unmount(at("/m")), nil},
		"removed":            {tree.Move(root, at("/m"), "/m"), linux.EINVAL},
	})
}
