// Package debian provides Debian's kernel for virtual machines, and creates the initial file system for
// it. It is for tests and benchmarks that need Linux beside Loam, or below it.
package debian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The kernels are Debian's unmodified ones; nothing of them is built here. Most of their drivers are
// modules.

// Flavour is Debian's name for a set of kernel options, the last part of the names of a kernel's files.
type Flavour string

// The flavours that tests use.
const (
	Cloud   Flavour = "cloud-amd64" // for virtual machines: it has no drivers for other hardware
	General Flavour = "amd64"       // with drivers for all hardware
)

// metapackage returns the name of a package that always depends on the newest kernel.
func (f Flavour) metapackage() string { return "linux-image-" + string(f) }

// cacheDir is the folder for the kernel's files, in the user's cache folder. "make test" also keeps its
// other extracted packages there.
const cacheDir = "loam-ci"

// Kernel is a kernel that is present on this machine.
type Kernel struct {
	Image   string // path of the kernel image
	modules string // folder of its modules
}

// FindKernel returns the newest of Debian's kernels of a flavour on this machine. If there is none, it
// downloads one with apt-get.
func FindKernel(ctx context.Context, f Flavour) (*Kernel, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, cacheDir)
	if k, err := kernelIn(dir, f); err == nil {
		return k, nil
	}
	if err := fetchKernel(ctx, dir, f); err != nil {
		return nil, fmt.Errorf("the kernel of Debian is not in %s and cannot be fetched: %w", dir, err)
	}
	return kernelIn(dir, f)
}

// HaveKernel reports whether FindKernel can return a kernel without a download.
func HaveKernel(f Flavour) bool {
	cache, err := os.UserCacheDir()
	if err != nil {
		return false
	}
	_, err = kernelIn(filepath.Join(cache, cacheDir), f)
	return err == nil
}

// kernelIn returns the newest kernel of a flavour below a folder.
func kernelIn(dir string, f Flavour) (*Kernel, error) {
	images, err := filepath.Glob(filepath.Join(dir, "boot", "vmlinuz-*[0-9]-"+string(f)))
	if err != nil || len(images) == 0 {
		return nil, errors.Join(os.ErrNotExist, err)
	}
	slices.Sort(images)
	image := images[len(images)-1]
	_, release, _ := strings.Cut(filepath.Base(image), "-")
	k := &Kernel{Image: image, modules: filepath.Join(dir, "lib/modules", release, "kernel")}
	_, err = os.Stat(k.modules)
	return k, err
}

// Modules returns the paths of module files. Each is named by its path below the folder of modules,
// such as "drivers/net/virtio_net.ko".
func (k *Kernel) Modules(names ...string) ([]string, error) {
	var files []string
	for _, name := range names {
		file := filepath.Join(k.modules, name)
		if _, err := os.Stat(file); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// fetchKernel downloads the package and extracts its files. It does not install the package, because
// that would change how this machine boots.
func fetchKernel(ctx context.Context, dir string, f Flavour) error {
	out, err := command(ctx, "", "apt-cache", "depends", f.metapackage())
	if err != nil {
		return err
	}
	_, rest, found := strings.Cut(string(out), "Depends: ")
	pkg, _, _ := strings.Cut(rest, "\n")
	if !found {
		return fmt.Errorf("apt-cache says nothing of %s: %q", f.metapackage(), out)
	}
	return Unpack(ctx, pkg, dir)
}
