package main

// Made-up GPUs: a device plugin (Kubernetes' device plugin API, v1beta1) that lends what a text file names.
//
//	gpu-plugin --inventory FILE [--resource nvidia.com/gpu] [--folder /var/lib/kubelet/device-plugins]
//
// A line of the file is a device's id, and the word "broken" after it where kubelet shall count the device as unhealthy.
// The file is looked at twice a second, so a test breaks a device by writing one word. A container finds the ids that it
// was given in NVIDIA_VISIBLE_DEVICES, as with the real plugin.

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	plugins "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const lookEvery = 500 * time.Millisecond

type lender struct {
	plugins.UnimplementedDevicePluginServer
	inventory string
}

func lendGPUs() int {
	flags := flag.NewFlagSet("gpu-plugin", flag.ExitOnError)
	inventory := flags.String("inventory", "", "file that names the devices")
	name := flags.String("resource", "nvidia.com/gpu", "resource that pods ask for")
	folder := flags.String("folder", "/var/lib/kubelet/device-plugins", "where kubelet listens for plugins")
	flags.Parse(os.Args[1:])
	for {
		if err := serveOnce(*folder, *name, *inventory); err != nil {
			log.Print(err)
		}
		time.Sleep(lookEvery)
	}
}

// serveOnce offers the devices to the kubelet that runs now, and returns when that one is gone: the next kubelet knows
// nothing of this plugin until it is told again.
func serveOnce(folder, name, inventory string) error {
	socket := filepath.Join(folder, "kubelet.sock")
	kubelet, err := os.Stat(socket)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	own := filepath.Join(folder, "made-up-"+strings.ReplaceAll(name, "/", "-")+".sock")
	if err := os.Remove(own); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", own)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	defer server.Stop()
	plugins.RegisterDevicePluginServer(server, &lender{inventory: inventory})
	go server.Serve(listener)
	if err := register(socket, filepath.Base(own), name); err != nil {
		return err
	}
	log.Printf("%s is offered to kubelet", name)
	for { // a kubelet that starts makes its socket anew and empties the folder
		time.Sleep(lookEvery)
		now, err := os.Stat(socket)
		if err != nil || !os.SameFile(kubelet, now) {
			return nil
		}
		if _, err := os.Stat(own); err != nil {
			return nil
		}
	}
}

func register(socket, endpoint, name string) error {
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	within, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	request := &plugins.RegisterRequest{Version: plugins.Version, Endpoint: endpoint, ResourceName: name}
	_, err = plugins.NewRegistrationClient(connection).Register(within, request)
	return err
}

func (l *lender) GetDevicePluginOptions(context.Context, *plugins.Empty) (*plugins.DevicePluginOptions, error) {
	return &plugins.DevicePluginOptions{}, nil
}

// ListAndWatch tells kubelet the devices now and after each change of the file.
func (l *lender) ListAndWatch(_ *plugins.Empty, stream plugins.DevicePlugin_ListAndWatchServer) error {
	ticks := time.NewTicker(lookEvery)
	defer ticks.Stop()
	var told []byte
	for first := true; ; first = false {
		text, err := os.ReadFile(l.inventory)
		if err != nil {
			return err
		}
		if first || !bytes.Equal(text, told) {
			if err := stream.Send(&plugins.ListAndWatchResponse{Devices: devices(text)}); err != nil {
				return err
			}
			told = text
		}
		select {
		case <-ticks.C:
		case <-stream.Context().Done():
			return nil
		}
	}
}

func devices(text []byte) (found []*plugins.Device) {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		id, rest, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if id == "" {
			continue
		}
		health := plugins.Healthy
		if strings.TrimSpace(rest) == "broken" {
			health = plugins.Unhealthy
		}
		found = append(found, &plugins.Device{ID: id, Health: health})
	}
	return found
}

func (l *lender) Allocate(_ context.Context, request *plugins.AllocateRequest) (*plugins.AllocateResponse, error) {
	response := &plugins.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		visible := map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(container.DevicesIds, ",")}
		response.ContainerResponses = append(response.ContainerResponses, &plugins.ContainerAllocateResponse{Envs: visible})
	}
	return response, nil
}
