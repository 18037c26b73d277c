package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"loam/unikernel"
	"loam/unikernel/detach"
)

func newRun() *cobra.Command {
	var f runFlags
	var passed goFlags
	cmd := &cobra.Command{
		Use:   "run [flags] PACKAGE|DIR|FILE.go|PACKAGE@VERSION|ELF-FILE|SCRIPT|COMMAND [-- ARGS]",
		Short: "Run a Go program or a Linux program on Loam",
		Long: `Run builds a Go program with the installed Go toolchain and runs it on Loam. The
program is named as for "go run" and is not changed. Arguments after -- are the
program's. The exit status is the program's.

If the argument is an ELF file or a script, it is run as an unmodified Linux program
in ring 3 of a virtual machine. It sees its interpreter, its loader, its libraries, the
files that these open at run time, and no other file of this host. With --root the argument is a COMMAND inside
a root folder, for example one made by debootstrap. The root folder may be a
container image: an OCI image layout, or an archive that docker save writes. Then
the image's Entrypoint, Cmd, Env, WorkingDir and User apply as for docker run, and
COMMAND may be left out.

If QEMU is installed, the program runs in a virtual machine on Loam's kernel, with
KVM if a guest boots under it (tried once and remembered). Otherwise it runs as a
confined process. One line on standard error says which, and why. --platform vm
and --platform process choose, and print nothing.

The guest is in the list of "loam ps" until it ends. With -d it runs in the background:
run returns when the program has started, or prints why it does not start. Its exit status is kept for
"loam ps -a" and "loam wait", and its output for "loam logs", until "loam rm".`,
		Example: `  loam run ./server                              a folder; nothing can connect to the program
  loam run -p 8080:80 ./server                   port 80 of the program is 127.0.0.1:8080
  loam run -e LEVEL=debug main.go -- -v          with an environment and arguments
  loam run -v ./site:/srv ./server               with files: /srv is a read-only copy of ./site
  loam run --disk data.img:/data --disk-size 1G ./server  /data is kept in data.img
  loam run --net tap:loam0 --ip 192.0.2.2/24 .   with an address of its own on a tap device
  loam run --platform vm --cpus 2 -m 1G ./server  in a virtual machine of this size, in ring 0
  loam run --platform process ./server           as a process
  loam run /usr/bin/redis-server -- --save ''    a Linux program
  loam run --root ./debian -m 1G /bin/bash       a Linux program with a root folder of its own
  loam run --root redis.tar -m 1G -p 6379:6379   the program that an image of a container names
  loam run -d --name web -p 8080:80 ./server     in the background; loam logs, loam stop and loam rm take the name
  loam run --pcap all.pcapng ./server            writes every packet to a file for Wireshark`,
		Args: oneProgram,
		RunE: func(cmd *cobra.Command, args []string) error {
			program, args := splitProgram(cmd, args)
			background := detach.Child()
			u, err := f.options(program, args)
			if err != nil {
				return err
			}
			if f.detach && background == nil {
				return startDetached(cmd.Context(), cmd.OutOrStdout())
			}
			if err := f.withPlatform(cmd.Context(), &u, cmd.ErrOrStderr()); err != nil {
				return err
			}
			u.Target.Flags = passed.given
			if isTerminal(os.Stderr) {
				u.Slow = func() { fmt.Fprintln(cmd.ErrOrStderr(), "loam: building", program) }
			}
			if isTerminal(os.Stderr) && background == nil {
				u.Network.Refused = refusal(os.Stderr)
			}
			return f.runListed(cmd, u, cmp.Or(program, f.root), background)
		},
	}
	f.register(cmd)
	passed.register("run", cmd.Flags())
	return cmd
}

// refusal returns a function for unikernel.Network.Refused. When the guest refuses a connection to a published port,
// the function prints a message, but only once for each port.
func refusal(w io.Writer) func(port uint16) {
	var said sync.Map
	return func(port uint16) {
		if _, before := said.LoadOrStore(port, true); !before {
			fmt.Fprintf(w, "loam: a connection was reset: the program does not listen at port %d yet, or at 127.0.0.1 only, where -p does not lead; have it listen at 0.0.0.0\n", port)
		}
	}
}

// isTerminal reports whether f is a character device, and so probably a terminal.
func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// splitProgram separates the argument before -- from those after it. The first is empty if there is none.
func splitProgram(cmd *cobra.Command, args []string) (program string, rest []string) {
	if len(args) == 0 || cmd.ArgsLenAtDash() == 0 {
		return "", args
	}
	return args[0], args[1:]
}

// oneProgram requires exactly one argument before --. With --root it may be missing, because an image can name a program.
func oneProgram(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	if dash < 0 {
		dash = len(args)
	}
	switch {
	case dash == 0 && cmd.Flags().Changed("root"):
	case dash == 0:
		return &usageError{"there is no program to run", "name a package, a folder or a .go file: loam run ./server"}
	case dash > 1:
		return &usageError{
			fmt.Sprintf("%q stands behind the program %q", args[1], args[0]),
			"put the program's arguments behind --: loam run " + args[0] + " -- " + strings.Join(args[1:dash], " "),
		}
	}
	return nil
}

// withPlatform sets the platform. If the platform is chosen automatically, it writes the reason to the writer say.
func (f *runFlags) withPlatform(ctx context.Context, o *unikernel.Options, say io.Writer) error {
	choice, err := choosePlatform(ctx, f.platform, say)
	o.Target.Platform, o.Machine.Emulator = choice.Platform, choice.Emulator
	return err
}

// shared returns the volumes that the program can change, as unikernel.Shared.
func shared(volumes []volume) (all []unikernel.Shared) {
	for _, v := range volumes {
		if v.writable {
			all = append(all, unikernel.Shared{Host: v.host, Guest: v.guest, NoCache: v.noCache})
		}
	}
	return all
}

// packed returns the volumes that are copied into the guest, as unikernel.Volume.
func packed(volumes []volume) (all []unikernel.Volume) {
	for _, v := range volumes {
		if v.writable {
			continue
		}
		all = append(all, unikernel.Volume{Host: v.host, Guest: v.guest})
	}
	return all
}
