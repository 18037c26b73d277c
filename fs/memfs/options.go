package memfs

import (
	"strconv"
	"strings"

	"loam/fs"
)

// ParseOptions reads the options of tmpfs(5): size, nr_inodes, mode, uid and gid. owner sets the last two. ok is false if an option is not
// known.
func ParseOptions(text string) (c Config, owner fs.Change, ok bool) {
	c.Mode = 0o777 | fs.Sticky
	for option := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(option, "=")
		base := 10
		if name == "mode" {
			base = 8
		}
		n, err := strconv.ParseInt(value, base, 64)
		switch name {
		case "":
			continue
		case "size":
			n, err = sizeOption(value)
			c.Bytes = n
		case "nr_inodes":
			c.Files = n
		case "mode":
			c.Mode = fs.Mode(n) & 0o7777
		case "uid":
			owner.Fields |= fs.SetOwner
			owner.UID = uint32(n)
		case "gid":
			owner.Fields |= fs.SetGroup
			owner.GID = uint32(n)
		default:
			return c, owner, false
		}
		if err != nil || n < 0 {
			return c, owner, false
		}
	}
	return c, owner, true
}

// sizeOption reads a number of bytes with a suffix of k, m or g. A percentage means no limit of its own.
func sizeOption(text string) (int64, error) {
	if strings.HasSuffix(text, "%") {
		return 0, nil
	}
	shift := 0
	if i := strings.IndexAny(text, "kKmMgG"); i > 0 && i == len(text)-1 {
		shift = map[byte]int{'k': 10, 'm': 20, 'g': 30}[text[i]|0x20]
		text = text[:i]
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n << shift, err
}
