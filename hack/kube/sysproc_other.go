//go:build !linux

package main

import "syscall"

// sysProcAttr is as on Linux, but a kube that is killed leaves its children.
func sysProcAttr(ownGroup bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: ownGroup}
}
