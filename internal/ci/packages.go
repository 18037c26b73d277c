package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"loam/internal/debian"
)

// installed lists the programs that tests and demonstrations need, with the package of Debian 12 that
// contains each.
var installed = []struct {
	file string // a program to look up in PATH, or an absolute path
	pkg  string
	why  string
}{
	{"gcc", "gcc", "the race detector links with it"},
	{"/usr/include/stdlib.h", "libc6-dev", "the race detector links with it"},
	{"/usr/include/linux/openat2.h", "linux-libc-dev", "Linux's numbers and layouts are compared with these headers"},
	{"/etc/ssl/certs/ca-certificates.crt", "ca-certificates", "modules are fetched over TLS"},
	{"git", "git", "the go command asks it for the version"},
	{"ip", "iproute2", "tests make network namespaces with it"},
	{"curl", "curl", "a client that is not ours"},
	{"tshark", "tshark", "a judge of packets that is not ours"},
	{"tcpdump", "tcpdump", "writes down what the kernel sees"},
	{"traceroute", "traceroute", "finds our stack by closed ports"},
	{"wrk", "wrk", "loads HTTP servers"},
	{"ab", "apache2-utils", "loads HTTP servers with a connection for each request"},
	{"iperf3", "iperf3", "sends and receives as fast as it can"},
	{"dnsmasq", "dnsmasq-base", "a DHCP and DNS server that is not ours"},
	{"dnsperf", "dnsperf", "loads DNS servers"},
	{"ethtool", "ethtool", "switches offloads off, so that frames are counted"},
	{"trafgen", "netsniff-ng", "a packet generator that ours is measured beside"},
	{"hping3", "hping3", "another"},
	{"dpdk-testpmd", "dpdk-dev", "another, over its drivers in software"},
	{dpdkLibrary, "libdpdk-dev", "the packet engine has a method over it"},
	{"pkg-config", "pkg-config", "cgo asks it where that is"},
	{"zmap", "zmap", "asks ranges of addresses: our prober is measured beside it"},
	{"masscan", "masscan", "another that does"},
	{"cpio", "cpio", "reads the archive that the Linux guest of test/bench starts from"},
	{"qemu-system-x86_64", "qemu-system-x86", "boots what was linked for a virtual machine, and iPXE"},
	{"bochs-bin", "bochs", "boots it too, and is stricter about the processor"},
	{"/usr/share/bochs/BIOS-bochs-latest", "bochsbios", "its firmware"},
	{"/usr/share/vgabios/vgabios.bin", "vgabios", "that of its display card"},
	{"/usr/lib/x86_64-linux-gnu/bochs/plugins/libbx_term_gui.so", "bochs-term", "its display"},
	{"grub-mkrescue", "grub-common", "makes the CD that it boots"},
	{"/usr/lib/grub/i386-pc/moddep.lst", "grub-pc-bin", "what is on that CD"},
	{"xorriso", "xorriso", "writes the CD"},
	{"ps", "procps", "shows processes, on Linux and on Loam"},
	{"strace", "strace", "traces programs, on Linux and on Loam"},
	{"gdb", "gdb", "debugs a program, on Linux and on Loam"},
	{"lsof", "lsof", "shows open files, on Linux and on Loam"},
	{"mke2fs", "e2fsprogs", "makes file systems, and e2fsck and debugfs judge ours"},
	{"sqlite3", "sqlite3", "a database whose journal is tested by power cuts"},
	{"debootstrap", "debootstrap", "makes the root folder of Debian's servers"},
	{"mformat", "mtools", "writes a part of it, and reads our file systems for UEFI"},
	{"/usr/share/OVMF/OVMF_CODE_4M.fd", "ovmf", "UEFI firmware for QEMU"},
	{"qemu-img", "qemu-utils", "judges our qcow2 files"},
	{"sgdisk", "gdisk", "judges our partition tables"},
	{"fsck.fat", "dosfstools", "judges our FAT file systems"},
}

// unpacked lists files that are extracted from their package to a folder, because installing the
// package would change the machine in a way that a test must not. The libraries of these programs come
// with Git and with the packages above.
var unpacked = []struct {
	file    string // a program to look up in PATH, or a path below that folder or below the root
	pkg     string
	why     string
	project string // text in the output of -V that identifies it, if other projects have a program of the same name
}{
	{"nginx", "nginx", "a web server that is not ours", ""}, // not installed, because its package would start it
	// not installed, because its package would add it to the boot menu
	{"boot/ipxe.lkrn", "ipxe", "a stack that is not ours, in QEMU", ""},
	// Installing these packages removes packages of other projects.
	{"ping", "iputils-ping", "asks our stack, as everybody does", "iputils"},
	{"arping", "iputils-arping", "the same at the link layer", "iputils"},
}

// unpackDir is the folder for extracted files, in the user's cache folder. Tests look there for files
// that are not programs: see test/interop/ipxe_test.go.
const unpackDir = "loam-ci"

// installPackages installs missing packages if possible. Otherwise it prints what is missing and
// returns nil: tests that need a missing package are skipped, and the step "test" decides whether that
// is allowed.
func installPackages(ctx context.Context) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	dir := filepath.Join(cache, unpackDir)
	// Extracted programs come first in PATH, because the machine may have a program of the same name
	// from another project. On Debian, the PATH of ordinary users lacks sbin, where ip is.
	os.Setenv("PATH", strings.Join([]string{
		filepath.Join(dir, "usr/sbin"), filepath.Join(dir, "usr/bin"), filepath.Join(dir, "bin"),
		os.Getenv("PATH"), "/usr/sbin", "/sbin",
	}, ":"))
	var install, unpack []string
	for _, p := range installed {
		install = wanted(install, p.file, p.pkg, p.why)
	}
	for _, p := range unpacked {
		if strings.Contains(p.file, "/") && (present("/"+p.file) || present(filepath.Join(dir, p.file))) {
			continue
		}
		if p.project != "" && present(p.file) && !debian.IsFrom(p.file, p.project) {
			fmt.Printf("%s of %s is missing, and stands beside the %s that is here: %s\n", p.file, p.project, p.file, p.why)
			unpack = append(unpack, p.pkg)
			continue
		}
		unpack = wanted(unpack, p.file, p.pkg, p.why)
	}
	kernel := debian.HaveKernel(debian.Cloud)
	if !kernel {
		fmt.Println("a kernel of Debian is missing: programs run by its KVM, and beside it")
	}
	if len(install)+len(unpack) == 0 && kernel {
		return nil
	}
	if os.Getuid() != 0 || !present("apt-get") {
		if all := append(install, unpack...); len(all) > 0 {
			fmt.Println("not installed (not root, or not Debian); to do it yourself: apt-get install", strings.Join(all, " "))
		}
		return nil // a test that needs the kernel tries again to download it
	}
	os.Setenv("DEBIAN_FRONTEND", "noninteractive") // without this, the installation of tshark asks a question
	if err := aptGet(ctx, "", "update", "-q"); err != nil {
		return err
	}
	if len(install) > 0 {
		if err := aptGet(ctx, "", append([]string{"install", "-q", "-y", "--no-install-recommends"}, install...)...); err != nil {
			return err
		}
	}
	for _, pkg := range unpack {
		if err := debian.Unpack(ctx, pkg, dir); err != nil {
			return err
		}
	}
	_, err = debian.FindKernel(ctx, debian.Cloud)
	return err
}

// wanted appends pkg to list and prints why it is needed, if its file is missing.
func wanted(list []string, file, pkg, why string) []string {
	if present(file) {
		return list
	}
	fmt.Printf("%s is missing: %s\n", pkg, why)
	return append(list, pkg)
}

// aptGet runs apt-get in dir.
func aptGet(ctx context.Context, dir string, args ...string) error {
	return shown(output(ctx, dir, "apt-get", args...))
}

// shown prints the output of a program that failed, and returns the program's error err.
func shown(out []byte, err error) error {
	if err != nil {
		os.Stdout.Write(out)
	}
	return err
}

func present(file string) bool {
	if strings.HasPrefix(file, "/") {
		_, err := os.Stat(file)
		return err == nil
	}
	_, err := exec.LookPath(file)
	return err == nil
}
