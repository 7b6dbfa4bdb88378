package main

import "syscall"

// sysProcAttr makes a child end with kube, however kube ends. With a process group of its own it is out of reach of the
// Ctrl-C of a terminal, and kube can end one after the other.
func sysProcAttr(ownGroup bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: ownGroup, Pdeathsig: syscall.SIGKILL}
}
