package library

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// system reads the list of the tree's libraries: the cache that ldconfig has written, or without it the configuration
// that ldconfig would read.
func (s *search) system() error {
	b, err := os.ReadFile(s.Root + "/etc/ld.so.cache")
	switch {
	case err == nil:
		if s.cache, err = parseCache(b); err != nil {
			return fmt.Errorf("/etc/ld.so.cache: %w: run ldconfig", err)
		}
	case errors.Is(err, fs.ErrNotExist):
		s.conf = s.parseConf("/etc/ld.so.conf", 0)
	default:
		return fmt.Errorf("/etc/ld.so.cache: %w: make it readable", reason(err))
	}
	return nil
}

// Layout of the cache (glibc, sysdeps/generic/dl-cache.h). In a cache written by glibc before 2.32, data in an old
// format precedes the new format, padded to 8 bytes. Both use the host's byte order.
const (
	oldMagic, newMagic     = "ld.so-1.7.0", "glibc-ld.so.cache1.1"
	oldHeader, oldEntry    = 16, 12
	newHeader, newEntry    = 48, 24
	flagsX8664, flagsMasks = 0x0303, 0xffff
)

var errCache = errors.New("it is damaged")

// parseCache returns the paths of the libraries for x86-64 by name. It skips variants for certain processors
// (glibc-hwcaps).
func parseCache(b []byte) (map[string]string, error) {
	if bytes.HasPrefix(b, []byte(oldMagic)) && len(b) >= oldHeader {
		skip := (oldHeader + oldEntry*uint64(binary.LittleEndian.Uint32(b[12:])) + 7) &^ 7
		b = b[min(skip, uint64(len(b))):]
	}
	if len(b) < newHeader || !bytes.HasPrefix(b, []byte(newMagic)) {
		return nil, errCache
	}
	count := uint64(binary.LittleEndian.Uint32(b[20:]))
	if count > uint64(len(b)-newHeader)/newEntry {
		return nil, errCache
	}
	libraries := map[string]string{}
	for i := range count {
		e := b[newHeader+i*newEntry:]
		if binary.LittleEndian.Uint32(e)&flagsMasks != flagsX8664 || binary.LittleEndian.Uint64(e[16:]) != 0 {
			continue
		}
		key, value := binary.LittleEndian.Uint32(e[4:]), binary.LittleEndian.Uint32(e[8:])
		if int64(key) >= int64(len(b)) || int64(value) >= int64(len(b)) {
			return nil, errCache
		}
		if name := cString(b[key:]); libraries[name] == "" { // if there are several, the first is used
			libraries[name] = cString(b[value:])
		}
	}
	return libraries, nil
}

// maxIncludes is the maximum depth of include lines, since files may include each other.
const maxIncludes = 8

// parseConf returns the folders that a file like ld.so.conf names.
func (s *search) parseConf(name string, depth int) (folders []string) {
	b, err := os.ReadFile(s.Root + name)
	if err != nil || depth > maxIncludes {
		return nil // ldconfig prints a warning and continues, too
	}
	for line := range strings.Lines(string(b)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n\r,:=", r) })
		if len(fields) == 0 {
			continue
		}
		if fields[0] != "include" {
			folders = append(folders, fields[0])
			continue
		}
		for _, pattern := range fields[1:] {
			if !strings.HasPrefix(pattern, "/") {
				pattern = filepath.Join(filepath.Dir(name), pattern)
			}
			files, _ := filepath.Glob(s.Root + pattern)
			for _, f := range files {
				folders = append(folders, s.parseConf(strings.TrimPrefix(f, s.Root), depth+1)...)
			}
		}
	}
	return folders
}
