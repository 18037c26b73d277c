package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"loam/unikernel"
)

func newBuild() *cobra.Command {
	var out, format string
	var volumes []string
	var source string
	var passed goFlags
	cmd := &cobra.Command{
		Use:   "build -o FILE PACKAGE|DIR|FILE.go|PACKAGE@VERSION",
		Short: "Build a Go program into a file that a virtual machine boots",
		Long: `Build builds a Go program as "loam run --platform vm" does, and writes it together
with Loam's kernel into one file. The end of the file's name, or --format, selects the
format:

  elf    an ELF file, which QEMU boots with -kernel; also for all other names
  efi    an application of UEFI firmware
  img    a raw disk that UEFI firmware boots
  qcow2  the same disk in QEMU's format
  iso    a CD that UEFI firmware boots

In such a machine the program has no arguments. Its output goes to the first serial
port. The first virtio network card, or else the first e1000e or e1000 card, gets its
address by DHCP. The program sees only the host's files that -v names, for example
certificates. If the machine has the device isa-debug-exit, it ends when the program
does, and QEMU's exit status is twice the program's plus one.`,
		Example: `  loam build -o web.elf ./server
  loam build -o web.elf -v ./site:/srv ./server
  loam build -o web.qcow2 ./server
  qemu-system-x86_64 -M q35 -cpu max -nographic -no-reboot -device isa-debug-exit \
      -nic user,model=virtio-net-pci,hostfwd=tcp::8080-:80 -kernel web.elf`,
		Args: oneProgram,
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return &usageError{"there is no name for the file", "write loam build -o program.elf " + args[0]}
			}
			parsed, err := parseVolumes(volumes)
			if err != nil {
				return err
			}
			if len(shared(parsed)) > 0 {
				return &usageError{"an image has no folder with :rw: its host is another", "leave out :rw, which copies the folder"}
			}
			kind := unikernel.FormatOf(out)
			if format != "" {
				kind = unikernel.Format(format)
			}
			if !slices.Contains(unikernel.Formats, kind) {
				return &usageError{fmt.Sprintf("there is no format %q", format), "write elf, efi, img, qcow2 or iso"}
			}
			traps, err := unikernel.BuildImage(cmd.Context(), unikernel.Target{Args: args[:1], Flags: passed.given, Source: source}, packed(parsed), kind, out)
			if err == nil {
				noteTraps(cmd.ErrOrStderr(), traps)
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write the image to `FILE`")
	cmd.Flags().StringVar(&format, "format", "", "write this `FORMAT`: elf, efi, img, qcow2 or iso (default: by the end of the file's name)")
	cmd.Flags().StringArrayVarP(&volumes, "volume", "v", nil, "put a read-only copy of a folder or a file into the image, `HOST[:GUEST]` (repeat for more)")
	cmd.Flags().StringVar(&source, "source", "", "link Loam's packages from the checkout in `DIR` instead of the copy in this command")
	passed.register("build", cmd.Flags())
	return cmd
}

// noteTraps prints a note that lists traps, the functions of a built program that make system calls by SYSCALL instructions
// of their own. Such calls work but are slow.
func noteTraps(w io.Writer, traps []string) {
	if len(traps) > 0 {
		fmt.Fprintf(w, "loam: note: there are SYSCALL instructions in %s; each is served by a trap, which takes longer than a call\n", strings.Join(traps, ", "))
	}
}
