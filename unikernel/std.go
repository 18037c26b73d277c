package unikernel

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"loam/unikernel/overlay"
)

// std is the overlay (edited and added files) of the standard library for one toolchain, in the cache.
type std struct {
	hash    string
	names   []string          // files below GOROOT/src that are replaced or added
	replace map[string]string // for each path below GOROOT, the file in the cache that replaces it
	flags   []string          // flags of the go command
}

// prepareStd returns the overlay of the standard library for a toolchain, from the cache if possible.
// source is a checkout of Loam, or empty for the embedded packages.
func prepareStd(ctx context.Context, c cache, t *toolchain, source string, platform Platform) (*std, error) {
	if source != "" {
		return makeStd(ctx, c, t, source, platform)
	}
	index := indexPath(c, t, platform)
	if s := readIndex(c, t, index); s != nil {
		return s, nil
	}
	s, err := makeStd(ctx, c, t, source, platform)
	if err != nil {
		return nil, err
	}
	return s, writeIndex(t, index, s.hash, s.names)
}

// makeStd generates an overlay, and stores it in the cache unless it is there.
func makeStd(ctx context.Context, c cache, t *toolchain, source string, platform Platform) (*std, error) {
	files, err := generate(t, platform)
	if err != nil {
		return nil, err
	}
	from, err := openSource(source)
	if err != nil {
		return nil, err
	}
	own, err := guestSource(from, platform)
	if err != nil {
		return nil, err
	}
	files, own = inStd(files), inStd(own)
	maps.Copy(files, own)
	profile := overlay.Files{profileFile: profileInGuest()}
	hash := hashFiles(t.GOROOT, files, own, profile)
	dir := c.path("std", hash)
	s := newStd(t, dir, hash, append(sortedKeys(files), overlay.InitOrderFile))
	return s, c.fill(dir, func(tmp string) error {
		first, err := goesFirst(ctx, t, own)
		if err != nil {
			return err
		}
		files[overlay.InitOrderFile] = overlay.InitOrder(first)
		maps.Copy(files, profile)
		return writeOld(tmp, files)
	})
}

// newStd returns the overlay that consists of the files called names in the folder dir.
func newStd(t *toolchain, dir, hash string, names []string) *std {
	s := &std{hash: hash, names: names, replace: make(map[string]string, len(names)), flags: profileFlags(dir)}
	for _, name := range names {
		s.replace[filepath.Join(t.GOROOT, "src", name)] = filepath.Join(dir, name)
	}
	return s
}

// writeOld writes files with a modification time in the past. Up to Go 1.26.4, the go command did not find
// packages in an overlay of the standard library whose files were less than two seconds old. No two
// overlays get the same time, because the go command distinguishes files by it.
func writeOld(dir string, files overlay.Files) error {
	past := time.Now().Add(-time.Minute)
	for name, src := range files {
		path := filepath.Join(dir, name)
		if err := writeFile(path, src); err != nil {
			return err
		}
		if err := os.Chtimes(path, past, past); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the edited files of the standard library.
func generate(t *toolchain, platform Platform) (overlay.Files, error) {
	parts := overlay.Personality
	if platform == Machine {
		parts |= overlay.Ring0
	}
	files, err := overlay.Generate(t.GOROOT, t.GOVERSION, parts)
	if errors.Is(err, overlay.ErrUnknownGo) {
		return nil, errorf("use one of "+overlay.Known()+" (GOTOOLCHAIN chooses)", "%v", err)
	}
	return files, err
}

// goesFirst lists the packages that are initialised before the program's. The list must be closed under
// imports. It must also be the same for all programs, or each program would have its own runtime package
// and rebuild everything. So it consists of the whole standard library and Loam, whether or not a program
// uses them. Package net, which Loam imports, has more imports when it is under test.
func goesFirst(ctx context.Context, t *toolchain, own overlay.Files) ([]string, error) {
	var all []string
	for name := range own {
		all = append(all, path.Dir(name))
	}
	out, err := t.run(ctx, "/", "list", "-find", "std") // the folder / belongs to no module
	all = append(all, strings.Fields(string(out))...)
	slices.Sort(all)
	return slices.Compact(all), err
}

// layout is part of the hash of a std folder. It is changed when the layout of such folders changes, so that
// old folders are not used.
const layout = "all of std goes first"

// hashFiles returns a hash of the inputs of an overlay, which is the name of its folder in the cache.
func hashFiles(goroot string, sets ...overlay.Files) string {
	parts := []string{goroot, layout}
	for _, files := range sets {
		for _, name := range sortedKeys(files) {
			parts = append(parts, name, string(files[name]))
		}
		parts = append(parts, "")
	}
	return digest(parts...)
}

// sortedKeys returns the keys of m, sorted.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// writeOverlay writes the file for go build -overlay. replace maps paths to their replacements.
func writeOverlay(path string, replace map[string]string) error {
	data, err := json.MarshalIndent(struct{ Replace map[string]string }{replace}, "", "\t")
	if err != nil {
		return err
	}
	return writeFile(path, data)
}
