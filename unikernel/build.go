package unikernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loam/boot"
	"loam/unikernel/guest"
	"loam/unikernel/image/efi"
	"loam/unikernel/media"
)

// Build builds the program; it is fast when nothing has changed. Builds of the same plan are serialised by
// a file lock, also between processes. If the build fails, no executable is left.
func (p *Plan) Build(ctx context.Context) error {
	unlock, err := lock(p.dir)
	if err != nil {
		return err
	}
	defer unlock()
	if err := p.link(ctx); err != nil || p.target.Platform != Machine {
		return err
	}
	starts, err := p.findStarts()
	if err == nil && starts != p.starts {
		p.starts = starts
		if err = p.writeMain(); err == nil {
			err = p.link(ctx)
		}
		if err == nil {
			_, err = p.findStarts() // determines and records whether the new executable starts other programs
		}
	}
	if err == nil && p.starts {
		err = p.buildPlain(ctx)
	}
	return err
}

// link makes the executable.
func (p *Plan) link(ctx context.Context) error {
	list := filepath.Join(p.dir, "overlay.json")
	if err := writeOverlay(list, p.replace); err != nil {
		return err
	}
	args := append([]string{"build", "-overlay", list, "-o", p.Program}, p.at.flags...)
	args = append(args, p.flags...)
	args = append(args, p.target.Platform.flags(p.target.Flags)...)
	_, err := p.at.tools.run(ctx, p.at.dir, append(args, p.at.args...)...)
	if err == nil {
		err = p.check(ctx)
	} else {
		err = p.explain(ctx, err)
	}
	if err != nil {
		os.Remove(p.Program)
	}
	return err
}

// Format is the format of a file that BuildImage writes.
type Format string

// The formats. FormatELF is for virtual machine monitors (QEMU with -kernel) and Multiboot 2, the others are for UEFI firmware:
// an application, and disks and a CD that contain it.
const (
	FormatELF   Format = "elf"
	FormatEFI   Format = "efi"
	FormatRaw   Format = media.Raw
	FormatQCOW2 Format = media.QCOW2
	FormatISO   Format = media.ISO
)

// Formats lists all formats.
var Formats = []Format{FormatELF, FormatEFI, FormatRaw, FormatQCOW2, FormatISO}

// FormatOf returns the format for a file name: the format whose name is the extension, in upper or lower case, or FormatELF.
func FormatOf(name string) Format {
	if f := Format(strings.ToLower(strings.TrimPrefix(filepath.Ext(name), "."))); slices.Contains(Formats, f) {
		return f
	}
	return FormatELF
}

// BuildImage builds a program for a virtual machine and writes it to the file out. The volumes are packed into the file.
// traps are the functions that Traps returns.
func BuildImage(ctx context.Context, t Target, volumes []Volume, format Format, out string) (traps []string, err error) {
	files, err := imageFiles(withLibraries(volumes))
	if err != nil {
		return nil, err
	}
	t.Platform = Machine
	p, err := NewPlan(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := p.Build(ctx); err != nil {
		return nil, err
	}
	data, err := prepared(p.Program, files)
	if err != nil {
		return nil, err
	}
	if err := writeImage(out, format, data); err != nil {
		return nil, errorf("name a file that can be written", "%v", err)
	}
	return Traps(data)
}

// writeImage writes a bootable program to a file.
func writeImage(out string, format Format, data []byte) error {
	whole := func(f *os.File) error { _, err := f.Write(data); return err }
	if format == FormatELF {
		return replaceFile(out, 0o755, whole)
	}
	data, err := efi.Application(data)
	if err != nil {
		return err
	}
	if format == FormatEFI {
		return replaceFile(out, 0o755, whole)
	}
	return replaceFile(out, 0o644, func(f *os.File) error { return media.Write(f, string(format), data) })
}

// replaceFile replaces the content of a file by what write writes, and creates the file if there is none. If write fails, for
// example because the disk is full, a regular file is removed, so that no incomplete file is left.
func replaceFile(out string, mode os.FileMode, write func(*os.File) error) error {
	f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err == nil {
		err = write(f)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil && st != nil && st.Mode().IsRegular() {
		if path, lerr := filepath.EvalSymlinks(out); lerr == nil {
			os.Remove(path)
		}
	}
	return err
}

// imageFiles packs volumes together with the configuration that mounts them.
func imageFiles(volumes []Volume) ([]byte, error) {
	if len(volumes) == 0 {
		return nil, nil
	}
	archives := [][]byte{nil} // entry 0 is boot.ConfigArchive, filled in below
	config := guest.Config{Machine: true, Links: []guest.Link{{Kind: guest.Card, Name: guestLink, MTU: cardMTU}}}
	for _, v := range volumes {
		var archive bytes.Buffer
		m, err := v.pack(&archive, len(archives))
		if err != nil {
			return nil, err
		}
		config.Mounts = append(config.Mounts, m)
		archives = append(archives, archive.Bytes())
	}
	var err error
	archives[boot.ConfigArchive], err = boot.Config{
		Args: []string{"program"}, Env: []string{guest.Variable + "=" + config.Encode()},
	}.Encode()
	return boot.EncodeArchives(archives), err
}

// what returns the command-line words that name the target, for messages.
func (p *Plan) what() string { return strings.Join(p.target.Args, " ") }

// explain adds the user's next step to a build error.
func (p *Plan) explain(ctx context.Context, err error) error {
	var b *Error
	if !errors.As(err, &b) || b.Output == "" {
		return err
	}
	pkg, lerr := listPackage(ctx, p.at.tools, p.at.dir, p.at.args[0], p.target.choosing())
	if lerr == nil && pkg.Name != "main" {
		return errorf("name a main package", "%s is package %s, not a program", p.what(), pkg.Name)
	}
	// the go command does not report this error itself, because Loam adds mainFile to the package
	if alone, ok := withoutFiles(lerr); ok {
		b = alone
	}
	b.What = fmt.Sprintf("%s does not build: %s", p.what(), b.What)
	if p.at.needsCgo(ctx, b.Output, p.target.choosing()) {
		b.Next = "it needs cgo, which programs on Loam do not have"
	}
	if b.Next == "" && p.at.copied != "" && strings.Contains(b.What, ": no matching files found") {
		b.Next = "the module comes without files that are to be embedded: run it in a clone of it, once these are made there"
	}
	if b.Next == "" && p.at.leavesOutReplacements(ctx) {
		b.Next = "the module replaces others by folders beside it, which it comes without: run it in a clone of it"
	}
	return b
}
