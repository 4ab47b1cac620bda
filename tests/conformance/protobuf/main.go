// Command protobuf is Go's side of the protobuf tests: its serializers, and a client of all three
// generated clientsets with protobuf as their content type.
//
//	protobuf decode     a body in base64 per line -> its object in JSON
//	protobuf encode     an object in JSON per line -> its body in base64
//	protobuf clients URL     create, list and watch objects of a server, and print what was read
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"

	admissionv1 "k8s.io/api/admission/v1"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apidiscoveryv2beta1 "k8s.io/api/apidiscovery/v2beta1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
)

func main() {
	for _, add := range []func(*runtime.Scheme) error{
		apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme, metav1.AddMetaToScheme, metav1beta1.AddMetaToScheme,
		admissionv1.AddToScheme, apidiscoveryv2.AddToScheme, apidiscoveryv2beta1.AddToScheme,
	} {
		utilruntime.Must(add(scheme.Scheme))
	}
	switch os.Args[1] {
	case "decode":
		convert(decode)
	case "encode":
		convert(encode)
	case "clients":
		clients(os.Args[2])
	}
}

// convert writes one line for each line of stdin.
func convert(one func([]byte) []byte) {
	in, out := bufio.NewReaderSize(os.Stdin, 1<<20), bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		out.Write(append(one(bytes.TrimSpace(line)), '\n'))
	}
}

func decode(line []byte) []byte {
	body := must(base64.StdEncoding.DecodeString(string(line)))
	object, _, err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Decode(body, nil, nil)
	if err != nil {
		return must(json.Marshal(map[string]string{"error": err.Error()}))
	}
	return must(json.Marshal(object))
}

func encode(line []byte) []byte {
	codecs := serializer.NewCodecFactory(scheme.Scheme)
	object, _, err := codecs.UniversalDeserializer().Decode(line, nil, nil)
	utilruntime.Must(err)
	body := &bytes.Buffer{}
	utilruntime.Must(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, body))
	return []byte(base64.StdEncoding.EncodeToString(body.Bytes()))
}

// clients prints one line of JSON for each step.
func clients(url string) {
	ctx := context.Background()
	config := &rest.Config{Host: url, ContentConfig: rest.ContentConfig{
		ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf,
	}}
	core := must(kubernetes.NewForConfig(config))
	definitions := must(apiextensions.NewForConfig(config)).ApiextensionsV1().CustomResourceDefinitions()
	services := must(aggregator.NewForConfig(config)).ApiregistrationV1().APIServices()
	pods := core.CoreV1().Pods("default")

	show("definition", must(definitions.Create(ctx, definition(), metav1.CreateOptions{})).Spec.Versions)
	listed := must(definitions.List(ctx, metav1.ListOptions{})).Items
	show("definitions", listed[0].Spec.Versions)
	service := &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1.example.com"},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: "example.com", Version: "v1", GroupPriorityMinimum: 1000, VersionPriority: 15,
			InsecureSkipTLSVerify: true,
			Service:               &apiregistrationv1.ServiceReference{Namespace: "default", Name: "example"},
		},
	}
	made := must(services.Create(ctx, service, metav1.CreateOptions{}))
	made.Labels = map[string]string{"b": "2", "a": "1"}
	show("service", must(services.Update(ctx, made, metav1.UpdateOptions{})).Labels)
	_, missing := pods.Get(ctx, "missing", metav1.GetOptions{})
	show("missing", missing.Error())

	factory := informers.NewSharedInformerFactory(core, 0)
	done := make(chan struct{})
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { show("added", object.(*corev1.Pod).Spec) },
		DeleteFunc: func(object any) {
			show("deleted", object.(*corev1.Pod).Name)
			close(done)
		},
	}
	must(factory.Core().V1().Pods().Informer().AddEventHandler(handler))
	factory.Start(done)
	factory.WaitForCacheSync(done)
	must(pods.Create(ctx, pod(), metav1.CreateOptions{}))
	utilruntime.Must(pods.Delete(ctx, "web", *metav1.NewDeleteOptions(0)))
	<-done
	show("removed", definitions.Delete(ctx, definition().Name, metav1.DeleteOptions{}))
}

func definition() *apiextensionsv1.CustomResourceDefinition {
	most := 10.0
	schema := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"size": {Type: "integer", Maximum: &most, Default: &apiextensionsv1.JSON{Raw: []byte("3")}},
		"tags": {
			Type:                 "object",
			AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}},
		},
		"list": {
			Type:  "array",
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}},
		},
	}}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Kind: "Thing"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema},
			}},
		},
	}
}

func pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
	}
}

func show(what string, value any) {
	fmt.Println(string(must(json.Marshal(map[string]any{what: value}))))
}

func must[T any](value T, err error) T {
	utilruntime.Must(err)
	return value
}
