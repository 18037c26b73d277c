// Package debian has Debian's kernel as the kernel of virtual machines, and makes the file
// system that it starts from. It is for tests and benchmarks that need a Linux beside Loam,
// or under it.
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

// The kernel is Debian's for machines that are virtual, as it is: nothing of it is built
// here. Most of its drivers are modules.

// metapackage always needs the newest kernel.
const metapackage = "linux-image-cloud-amd64"

// cacheDir is where its files lie, in the user's cache folder; "make test" keeps what
// else it takes out of packages there.
const cacheDir = "loam-ci"

// Kernel is a kernel that is there.
type Kernel struct {
	Image   string // the file
	modules string // the folder of its modules
}

// FindKernel returns Debian's newest kernel, which it fetches with apt-get if none is there.
func FindKernel(ctx context.Context) (*Kernel, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, cacheDir)
	if k, err := kernelIn(dir); err == nil {
		return k, nil
	}
	if err := fetchKernel(ctx, dir); err != nil {
		return nil, fmt.Errorf("the kernel of Debian is not in %s and cannot be fetched: %w", dir, err)
	}
	return kernelIn(dir)
}

// HaveKernel reports whether FindKernel has nothing to fetch.
func HaveKernel() bool {
	cache, err := os.UserCacheDir()
	if err != nil {
		return false
	}
	_, err = kernelIn(filepath.Join(cache, cacheDir))
	return err == nil
}

// kernelIn looks for the newest kernel below a folder.
func kernelIn(dir string) (*Kernel, error) {
	images, err := filepath.Glob(filepath.Join(dir, "boot", "vmlinuz-*-cloud-amd64"))
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

// Modules are the files of modules, each of which is named by its path below the folder of
// modules, such as "drivers/net/virtio_net.ko".
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

// fetchKernel takes the files out of the package: to install it would change how this
// machine boots.
func fetchKernel(ctx context.Context, dir string) error {
	out, err := command(ctx, "", "apt-cache", "depends", metapackage)
	if err != nil {
		return err
	}
	_, rest, found := strings.Cut(string(out), "Depends: ")
	pkg, _, _ := strings.Cut(rest, "\n")
	if !found {
		return fmt.Errorf("apt-cache says nothing of %s: %q", metapackage, out)
	}
	return Unpack(ctx, pkg, dir)
}
