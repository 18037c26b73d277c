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

	"loam"
	"loam/unikernel/overlay"
)

// std is the overlay of the standard library for one toolchain, on disk.
type std struct {
	hash    string
	replace map[string]string // path below GOROOT -> file in the cache
	flags   []string          // of the go command
}

// prepareStd makes the overlay for a toolchain, or finds it in the cache.
// checkout is a folder of Loam's own module if the program is of that: Loam's
// packages are then those of that module.
func prepareStd(ctx context.Context, c cache, t *toolchain, checkout string, platform Platform) (*std, error) {
	files, err := generate(t, platform)
	if err != nil {
		return nil, err
	}
	own, err := guestSource(loam.Source, platform)
	if err != nil {
		return nil, err
	}
	if checkout == "" {
		files, own = inStd(files), inStd(own)
		maps.Copy(files, own)
	}
	profile := overlay.Files{profileFile: profileOf(checkout)}
	hash := hashFiles(t.GOROOT, files, own, profile)
	dir := c.path("std", hash)
	s := &std{hash: hash, replace: map[string]string{}, flags: profileFlags(dir, checkout)}
	for name := range files {
		s.add(t, dir, name)
	}
	s.add(t, dir, overlay.InitOrderFile)
	return s, c.fill(dir, func(tmp string) error {
		first, err := goesFirst(ctx, t, own, checkout)
		if err != nil {
			return err
		}
		files[overlay.InitOrderFile] = overlay.InitOrder(first)
		maps.Copy(files, profile)
		return writeOld(tmp, files)
	})
}

// writeOld writes files that seem to have been there for a while: up to Go 1.26.4
// the go command did not find, in an overlay of the standard library, the packages
// whose files were less than two seconds old. The time is not the same for any two
// overlays, since the go command tells files by it.
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

// generate makes the edited files of the standard library.
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

// goesFirst lists the packages that are initialised before the program's. These
// must be closed under imports, and be the same for all programs, or each would
// have a runtime package of its own and build everything anew. So they are the
// whole standard library and Loam, whatever of them a program has: package net,
// which Loam imports, itself imports more when it is tested. What they import is not looked
// for, nor is the checkout's module asked for by its name: either would want the modules that
// Loam's commands are linked with, which programs in the checkout need not have.
func goesFirst(ctx context.Context, t *toolchain, own overlay.Files, checkout string) ([]string, error) {
	dir, patterns := "/", []string{"std"} // in the root folder no module is in the way
	var all []string
	for name := range own {
		all = append(all, path.Dir(name))
	}
	if checkout != "" {
		dir, patterns = filepath.Dir(t.GOMOD), append(patterns, "./...")
	}
	out, err := t.run(ctx, dir, append([]string{"list", "-find"}, patterns...)...)
	all = append(all, strings.Fields(string(out))...)
	slices.Sort(all)
	return slices.Compact(all), err
}

func (s *std) add(t *toolchain, dir, name string) {
	s.replace[filepath.Join(t.GOROOT, "src", name)] = filepath.Join(dir, name)
}

// layout changes when the folder of a std is made otherwise than before.
const layout = "all of std goes first"

// hashFiles names what the overlay is made from.
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

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// writeOverlay writes the file for go build -overlay.
func writeOverlay(path string, replace map[string]string) error {
	data, err := json.MarshalIndent(struct{ Replace map[string]string }{replace}, "", "\t")
	if err != nil {
		return err
	}
	return writeFile(path, data)
}
