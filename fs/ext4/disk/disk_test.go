package disk

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

// Hashes of names as debugfs prints them (dx_hash), by version: legacy, half_md4, tea.
func TestHash(t *testing.T) {
	g := Geometry{HashSeed: [4]uint32{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}}
	for _, c := range []struct {
		version      uint8
		name         string
		major, minor uint32
	}{
		{0, "a", 0xe74b53e2, 0x0},
		{0, "hello", 0x32252546, 0x0},
		{0, "0123456789abcdef0123456789abcdef0123", 0xff300c4a, 0x0},
		{0, "lost+found", 0x5e2aba24, 0x0},
		{1, "a", 0xd5fa7d7a, 0xacb48187},
		{1, "hello", 0x1746da32, 0x420013b5},
		{1, "0123456789abcdef0123456789abcdef0123", 0x8747a904, 0xefd94451},
		{1, "lost+found", 0x591de422, 0x6ffc56e0},
		{2, "a", 0x6d0ea4c0, 0xc18922df},
		{2, "hello", 0x6f5bb1a8, 0x231917c2},
		{2, "0123456789abcdef0123456789abcdef0123", 0xa45f26b8, 0x3f3d6b5b},
		{2, "lost+found", 0x2dbf9e80, 0xbfebee4f},
	} {
		if major, minor := g.Hash(c.version, c.name); major != c.major || c.version > 0 && minor != c.minor {
			t.Errorf("%d %q: %#x %#x, want %#x %#x", c.version, c.name, major, minor, c.major, c.minor)
		}
	}
}

// Times have 34 bits of seconds, and 30 of nanoseconds ("Inode Timestamps").
func TestTimes(t *testing.T) {
	i := Inode(make([]byte, 256))
	i.SetExtraIsize(32)
	for _, seconds := range []int64{MinSeconds, -1, 0, 1, 1<<31 - 1, 1 << 31, 1<<32 + 5, 1 << 33, MaxSeconds} {
		i.SetTime(ModifyTime, seconds, 123456789)
		if s, ns := i.Time(ModifyTime); s != seconds || ns != 123456789 {
			t.Errorf("%d became %d.%d", seconds, s, ns)
		}
	}
	i.SetTime(ModifyTime, MaxSeconds+10, 0)
	if s, _ := i.Time(ModifyTime); s != MaxSeconds {
		t.Errorf("beyond the end: %d", s)
	}
	short := Inode(make([]byte, 128))
	short.SetTime(ModifyTime, 1<<33, 5)
	if s, ns := short.Time(ModifyTime); s != MaxSecondsBare || ns != 0 {
		t.Errorf("an inode of 128 bytes: %d.%d", s, ns)
	}
}

// In a block of 64 KiB, an entry may be as long as the block; its length does not fit 16 bits.
func TestEntryLengths(t *testing.T) {
	for _, size := range []int{1024, 4096, 1 << 16} {
		g := &Geometry{BlockSize: size, Inodes: 100, FileType: true}
		b := make([]byte, size)
		g.InitDirectory(b)
		if err := g.CheckDirectory(b); err != nil {
			t.Errorf("%d: %v", size, err)
		}
		n := 0
		for g.AddEntry(b, strings.Repeat("x", 1+n%255), uint32(n%100)+1, TypeRegular) {
			n++
		}
		if err := g.CheckDirectory(b); err != nil || n < size/300 {
			t.Errorf("%d: %d entries, %v", size, n, err)
		}
		for e, ok := NextEntry(b, 0); ok; e, ok = NextEntry(b, 0) {
			RemoveEntry(b, e)
			if g.CheckDirectory(b) != nil {
				t.Fatalf("%d: damaged by a removal", size)
			}
		}
	}
}

func TestBitmaps(t *testing.T) {
	b := make([]byte, 64)
	SetBits(b, 5, 300)
	for i := range uint32(512) {
		if Bit(b, i) != (i >= 5 && i < 305) {
			t.Fatalf("bit %d", i)
		}
	}
	if n := NextClear(b, 5, 512); n != 305 {
		t.Errorf("the next clear bit is %d", n)
	}
	if n := NextSet(b, 305, 512); n != 512 {
		t.Errorf("the next set bit is %d", n)
	}
	if n := ClearBits(b, 0, 512); n != 300 || !allZero(b) {
		t.Errorf("%d bits were set", n)
	}
}

// Attributes can be written and read back, both in the inode and in a block of their own.
func TestAttributes(t *testing.T) {
	all := []Attribute{
		{"user.b", []byte("value")}, {"user.a", nil}, {"security.selinux", []byte("label")},
		{"system.posix_acl_access", []byte{1, 0, 0, 0}}, {"trusted.x", bytes.Repeat([]byte("y"), 33)},
	}
	for _, block := range []bool{false, true} {
		b := make([]byte, 1024)
		WriteAttributes(b, block, all)
		got, err := ReadAttributes(b, block)
		if err != nil || len(got) != len(all) {
			t.Fatalf("%d attributes, %v", len(got), err)
		}
		for i, a := range all { // WriteAttributes has sorted the attributes
			if got[i].Name != a.Name || !bytes.Equal(got[i].Value, a.Value) {
				t.Errorf("%v, want %v", got[i], a)
			}
		}
	}
}

// The checksum of a superblock from mke2fs equals the one in the golden bytes.
func TestGoldenSuper(t *testing.T) {
	s := goldenSuper(t)
	g, err := ParseSuper(s)
	if err != nil {
		t.Fatal(err)
	}
	if g.BlockSize != 1024 || g.Blocks != 1024 || g.Groups != 1 || g.InodeSize != 256 || g.DescSize != 64 || g.Inodes != 128 || g.ExtraIsize != 32 {
		t.Errorf("%+v", g)
	}
	before := bytes.Clone(s)
	s.Seal()
	if !bytes.Equal(before, s) {
		t.Error("the checksum differs")
	}
	s.SetFreeInodes(1)
	if _, err := ParseSuper(s); err == nil {
		t.Error("a wrong checksum is accepted")
	}
}

// goldenSuper returns the superblock that the command mke2fs -t ext4 -b 1024 -N 128 IMAGE 1M wrote.
func goldenSuper(t testing.TB) Super {
	s := make(Super, SuperSize)
	for line := range strings.Lines(golden) {
		at, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		offset, err := hex.DecodeString(at)
		data, err2 := hex.DecodeString(rest)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		copy(s[int(offset[0])<<8|int(offset[1]):], data)
	}
	return s
}

const golden = `0000 800000000004000033000000c603000075000000010000000000000000000000
0020 00200000002000008000000000000000c6af046b0000ffff53ef010001000000
0040 c6af046b000000000000000001000000000000000b0000000001000038000000
0060 c20200006b0400000123456789abcdef0123456789abcdef0000000000000000
00c0 0000000000000000000000000000070000000000000000000000000000000000
00e0 000000000000000000000000ef46cc7283204b50854c47207caacd0601004000
0100 0c00000000000000c6af046b0000000000000000000000000000000000000000
0140 0000000000000000000000000000000000000000000000000000000020002000
0160 0100000000000000000000000000000000000000040100001b00000000000000
0240 00000000000000002c0000000000000000000000000000000000000000000000
03e0 000000000000000000000000000000000000000000000000000000009f14f072`

// FuzzSuper: for every superblock that is accepted, the arithmetic of its geometry is consistent.
func FuzzSuper(f *testing.F) {
	f.Add([]byte(goldenSuper(f)))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := make(Super, SuperSize)
		copy(s, b)
		s.SetROCompat(s.ROCompat() &^ ROCompatMetadataCsum)
		g, err := ParseSuper(s)
		if err != nil {
			return
		}
		for _, group := range []uint32{0, 1, g.Groups / 2, g.Groups - 1} {
			if group >= g.Groups {
				continue
			}
			if block, at := g.DescriptorBlock(group); at+g.DescSize > g.BlockSize || block == 0 {
				t.Errorf("descriptor of group %d at %d of %d", group, at, block)
			}
			if g.GroupBlocks(group) == 0 || g.GroupStart(group) >= g.Blocks {
				t.Errorf("group %d has no blocks", group)
			}
		}
		s.ReadOnlyReason()
	})
}

// FuzzBlocks: no parser of a block panics, and every accepted block can be walked.
func FuzzBlocks(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 12, 0, 1, 2, '.', 0, 0, 0})
	f.Add([]byte{0x0a, 0xf3, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0})
	f.Add([]byte{0, 0, 2, 0xea, 1, 1, 10, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 'x'})
	f.Fuzz(func(t *testing.T, data []byte) {
		g := &Geometry{BlockSize: 1024, Blocks: 1 << 20, FirstData: 1, Inodes: 1000, FileType: true}
		b := make([]byte, 1024)
		copy(b, data)
		if g.CheckDirectory(b) == nil {
			c := bytes.Clone(b)
			for e, ok := NextEntry(c, 0); ok; e, ok = NextEntry(c, e.Offset+e.Length) {
			}
			g.AddEntry(c, "name", 5, TypeRegular)
			if e, ok := FindEntry(c, "name"); ok {
				RemoveEntry(c, e)
			}
			if g.CheckDirectory(c) != nil {
				t.Error("a checked block is damaged by a change")
			}
		}
		for _, area := range [][]byte{bytes.Clone(b), bytes.Clone(b[:BlockArea])} {
			if g.CheckExtents(area, -1) == nil {
				x := Extents(area)
				for i := range x.Count() {
					x.Key(i)
				}
				x.Search(500)
			}
		}
		ReadAttributes(b, true)
		ReadAttributes(b[128:], false)
		for _, x := range []Index{IndexRoot(b), IndexNode(b)} {
			if g.CheckIndex(x, 2) == nil {
				x.Search(12345)
			}
		}
		i := Inode(b[:256])
		i.InlineData()
		i.Time(CreateTime)
	})
}
