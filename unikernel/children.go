package unikernel

import (
	"context"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loam/exec/library"
	"loam/unikernel/linked"
	"loam/unikernel/needed"
)

// A Go program in a virtual machine that starts other programs is linked with package unikernel/rt/children, which
// runs the other programs in ring 3. It is not linked into other programs, because they would grow by a third. The
// linker determines whether a program starts others: it removes syscall.forkExec if no code can call it. A program is
// therefore first built without package children. If the result contains the function, the program is built again.
// The answer is stored for the next build.
//
// A program may start itself. It cannot run in ring 3, because its runtime would expect Linux. Therefore its plain build for
// Linux is placed at the path that os.Executable returns.
//
// Rejected: go list -deps, which costs as much as a build of an unchanged program. It would also count packages that import
// os/exec but use it only on other systems.

// starter is the function by which every Go program starts other programs (unikernel/overlay).
const starter = "syscall.forkExec"

// startsFile returns the name of the file that records whether a linked program starts others.
func startsFile(program string) string { return program + ".starts" }

// knownToStart reports whether the last build of the program has found that it starts other programs.
func knownToStart(program string) bool {
	text, err := os.ReadFile(startsFile(program))
	return err == nil && strings.HasSuffix(string(text), " true")
}

// findStarts determines whether the linked program starts other programs. The answer for an unchanged executable is stored.
func (p *Plan) findStarts() (bool, error) {
	id := identity(p.Program)
	if text, err := os.ReadFile(startsFile(p.Program)); err == nil && strings.HasPrefix(string(text), id+" ") {
		return knownToStart(p.Program), nil
	}
	starts, err := defines(p.Program, starter)
	if err != nil {
		return false, err
	}
	return starts, writeFile(startsFile(p.Program), fmt.Appendf(nil, "%s %v", id, starts))
}

// defines reports whether a program has a function.
func defines(program, function string) (bool, error) {
	f, err := elf.Open(program)
	if err != nil {
		return false, err
	}
	defer f.Close()
	text := f.Section(".text")
	if text == nil {
		return false, linked.ErrProgram
	}
	all, err := linked.Functions(f, text.Addr)
	return slices.ContainsFunc(all, func(fn linked.Function) bool { return fn.Name == function }), err
}

// plain returns the path of the plain build.
func (p *Plan) plain() string { return filepath.Join(p.dir, "linux", p.at.name) }

// buildPlain builds the program for Linux, with the user's flags.
func (p *Plan) buildPlain(ctx context.Context) error {
	args := append([]string{"build", "-o", p.plain()}, p.at.flags...)
	args = append(append(args, p.target.Flags...), withoutMainFile(p.at.args)...)
	_, err := p.at.tools.run(ctx, p.at.dir, args...)
	return err
}

// Volumes returns the files that the program needs in addition to the volumes of the user.
func (p *Plan) Volumes() []Volume {
	if !p.starts {
		return nil
	}
	return []Volume{{Host: p.plain(), Guest: p.Program}}
}

// withLibraries returns volumes with the interpreters and libraries of the ELF files among them, unless another volume
// contains a file with that path. If a library of an ELF file is not found, the file is left alone: it may not be a program
// for this machine.
func withLibraries(volumes []Volume) []Volume {
	all := slices.Clone(volumes)
	for _, v := range volumes {
		if !needed.IsELF(v.Host) {
			continue
		}
		files, err := neededBy(v.Host)
		if err != nil {
			continue
		}
		for _, f := range files {
			real, err := filepath.EvalSymlinks(f)
			if err == nil && !covers(all, f) {
				all = append(all, Volume{Host: real, Guest: f, Writable: true})
			}
		}
	}
	return all
}

// covers reports whether one of the volumes contains a path of the guest.
func covers(volumes []Volume, path string) bool {
	return slices.ContainsFunc(volumes, func(v Volume) bool {
		return v.Guest == path || strings.HasPrefix(path, strings.TrimSuffix(v.Guest, "/")+"/")
	})
}

// neededBy returns the interpreter and the libraries of an ELF file, by their paths on the host.
func neededBy(path string) (files []string, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	needs, err := library.Host{}.Find(path)
	if err != nil {
		return nil, err
	}
	return filesOf(needs), nil
}

// filesOf returns the paths of the interpreter and the libraries.
func filesOf(needs library.Needs) (files []string) {
	if needs.Interp != "" {
		files = append(files, needs.Interp)
	}
	for _, l := range needs.Libraries {
		files = append(files, l.Path)
	}
	return files
}
