package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"loam/fs/ext4/format"
	"loam/fs/imagefile"
)

// "loam disk" works on ext4 images without mounting them and without privileges. Its exit status is 0 on success; 1 for
// a damaged image or a failed copy; 2 for a mistake of the user, such as a file that does not exist.

func newDisk() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "disk COMMAND",
		Short: "Create, check, read and fill images of disks",
		Long: `Disk works on images with an ext4 file system: images of "loam run --disk" as well
as images of mke2fs. Nothing is mounted and no privilege is needed. An image that a program
uses is locked, and left alone.`,
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newDiskCreate(), newDiskGrow(), newDiskCheck(), newDiskList(), newDiskCat(), newDiskCopy(), newDiskStat())
	return cmd
}

// diskError makes errors of package imagefile mistakes of the user.
func diskError(err error) error {
	var e *imagefile.Error
	if errors.As(err, &e) {
		return &usageError{e.What, e.Next}
	}
	return err
}

// atLeast requires at least n arguments. If most is not 0, it is the maximum number of arguments. usage is part of the
// error message.
func atLeast(n int, most int, usage string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n || most > 0 && len(args) > most {
			return &usageError{fmt.Sprintf("%s takes other arguments", cmd.CommandPath()), "write " + cmd.CommandPath() + " " + usage}
		}
		return nil
	}
}

// onImage opens an image, calls f, and closes it.
func onImage(name string, writable bool, f func(*imagefile.Image) error) error {
	i, err := imagefile.Open(name, writable)
	if err != nil {
		return diskError(err)
	}
	return diskError(errors.Join(f(i), i.Close()))
}

func newDiskCreate() *cobra.Command {
	var size string
	var c format.Config
	cmd := &cobra.Command{
		Use:     "create --size SIZE IMAGE",
		Short:   "Create an image with an empty file system",
		Long:    "Create makes a sparse file with an empty ext4 file system, with the features that mke2fs has by default.",
		Example: "  loam disk create --size 1G data.img",
		Args:    atLeast(1, 1, "--size 1G IMAGE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if size == "" {
				return &usageError{"there is no size", "write loam disk create --size 1G " + args[0]}
			}
			n, err := parseSizeOf("--size", size)
			if err != nil {
				return err
			}
			c.UID, c.GID = uint32(os.Getuid()), uint32(os.Getgid())
			f, err := imagefile.Create(args[0], int64(n), c)
			if err != nil {
				return diskError(err)
			}
			return f.Close()
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&size, "size", "", "the size of the image, `SIZE` in M or G")
	cmd.Flags().StringVar(&c.Label, "label", "", "the name of the file system, `TEXT` of up to 16 bytes")
	cmd.Flags().IntVar(&c.BlockSize, "block-size", 0, "bytes of a block, `N`: a power of two from 1024 to 65536 (default 4096, or 1024 below 64 MiB)")
	cmd.Flags().Uint32Var(&c.Inodes, "inodes", 0, "minimum number of files that the file system can hold, `N` (default: one for each 16 KiB)")
	cmd.Flags().IntVar(&c.Reserved, "reserved", 0, "blocks that only user 0 may use, in `PERCENT`")
	return cmd
}

func newDiskGrow() *cobra.Command {
	return &cobra.Command{
		Use:   "grow IMAGE SIZE",
		Short: "Make an image and its file system larger",
		Long: `Grow makes the file of an image larger, and then the file system in it. The files in it
stay as they are. SIZE is in M or G. A program that runs on Loam can do the second step
itself, with resize2fs, on a disk that is mounted.`,
		Example: "  loam disk grow data.img 2G",
		Args:    atLeast(2, 2, "IMAGE SIZE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := parseSizeOf("the size", args[1])
			if err != nil {
				return err
			}
			return diskError(imagefile.Grow(args[0], int64(n)))
		},
	}
}

func newDiskCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check IMAGE",
		Short: "Check the file system of an image",
		Long: `Check reads every structure of the file system and compares them, as e2fsck -fn does.
The image is not changed: a journal that is not empty is recovered in memory. The exit
status is 0 if the file system is intact, 1 if it is damaged, and 2 if it cannot be
checked. e2fsck repairs damage.`,
		Args: atLeast(1, 1, "IMAGE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := imagefile.Check(args[0])
			if err != nil {
				return diskError(err)
			}
			out := cmd.OutOrStdout()
			for _, p := range f.Problems {
				fmt.Fprintf(out, "%s: %s\n", args[0], p)
			}
			if f.More > 0 {
				fmt.Fprintf(out, "%s: %d more problems\n", args[0], f.More)
			}
			if !f.OK() {
				fmt.Fprintf(out, "%s: damaged: repair it with e2fsck -f %s\n", args[0], args[0])
				return exitError(statusFailed)
			}
			state := "clean"
			if f.Recovered {
				state = "not unmounted, and well once its journal is recovered"
			}
			fmt.Fprintf(out, "%s: %s: %d files, %d folders, %d of %d blocks of %d bytes\n", args[0], state, f.Files, f.Directories, f.Blocks, f.Summary.Blocks, f.Summary.BlockSize)
			return nil
		},
	}
}

func newDiskList() *cobra.Command {
	var long, all bool
	cmd := &cobra.Command{
		Use:     "ls IMAGE [PATH...]",
		Short:   "List folders in an ext4 image",
		Example: "  loam disk ls -l data.img /var/log",
		Args:    atLeast(1, 0, "IMAGE [PATH...]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onImage(args[0], false, func(i *imagefile.Image) error {
				paths := args[1:]
				if len(paths) == 0 {
					paths = []string{"/"}
				}
				for _, p := range paths {
					if err := i.List(p, long, all, cmd.OutOrStdout()); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVarP(&long, "long", "l", false, "show mode, links, owner, group, size and time in UTC, too")
	cmd.Flags().BoolVarP(&all, "recursive", "R", false, "list the folders below, too")
	return cmd
}

func newDiskCat() *cobra.Command {
	return &cobra.Command{
		Use:     "cat IMAGE PATH...",
		Short:   "Print the content of files in an ext4 image",
		Example: "  loam disk cat data.img /etc/hosts",
		Args:    atLeast(2, 0, "IMAGE PATH..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onImage(args[0], false, func(i *imagefile.Image) error {
				for _, p := range args[1:] {
					if err := i.Cat(p, cmd.OutOrStdout()); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func newDiskStat() *cobra.Command {
	return &cobra.Command{
		Use:   "stat IMAGE [PATH...]",
		Short: "Describe an ext4 image, or files in it",
		Args:  atLeast(1, 0, "IMAGE [PATH...]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onImage(args[0], false, func(i *imagefile.Image) error {
				if len(args) == 1 {
					return i.Describe(cmd.OutOrStdout())
				}
				for _, p := range args[1:] {
					if err := i.Stat(p, cmd.OutOrStdout()); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func newDiskCopy() *cobra.Command {
	return &cobra.Command{
		Use:   "cp SOURCE... TARGET",
		Short: "Copy files and folders into an image, or out of it",
		Long: `Cp copies files and whole folders. Either the sources or the target are in an image:
IMAGE:/PATH. Modes, times, symbolic links and, for root, owners are kept; devices,
pipes and sockets are skipped with a message.`,
		Example: `  loam disk cp ./site data.img:/srv
  loam disk cp data.img:/var/log/app.log .`,
		Args: atLeast(2, 0, "SOURCE... TARGET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			skipped := func(name, why string) {
				fmt.Fprintf(cmd.ErrOrStderr(), "loam: %s is skipped: %s\n", name, why)
			}
			sources, to := args[:len(args)-1], args[len(args)-1]
			if image, inside, ok := inImage(to); ok {
				return onImage(image, true, func(i *imagefile.Image) error {
					for _, from := range sources {
						if _, _, ok := inImage(from); ok {
							return &usageError{"both " + from + " and " + to + " are in an image", "copy to the host first"}
						}
						if err := i.CopyIn(from, inside, skipped); err != nil {
							return err
						}
					}
					return nil
				})
			}
			for _, from := range sources {
				image, inside, ok := inImage(from)
				if !ok {
					return &usageError{"neither " + from + " nor " + to + " is in an image", "write one of them as IMAGE:/PATH"}
				}
				if err := onImage(image, false, func(i *imagefile.Image) error { return i.CopyOut(inside, to, skipped) }); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// inImage splits an argument of the form IMAGE:/PATH into the image file and the path inside the image.
func inImage(text string) (image, inside string, ok bool) {
	i := strings.LastIndex(text, ":/")
	if i <= 0 {
		return "", "", false
	}
	return text[:i], path.Clean(text[i+1:]), true
}
