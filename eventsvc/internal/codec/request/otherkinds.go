package request

import (
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidings.example/eventsvc/internal/event"
)

// DecodeDeleteOptions reads the body of a delete, which must not be empty, over
// options. Like kube-apiserver, it accepts DeleteOptions of any group and ignores
// unknown fields.
func (c *Decoder) DecodeDeleteOptions(contentType string, body []byte, options *metav1.DeleteOptions) error {
	if err := c.Decode(contentType, body, options); err != nil {
		return err
	}
	if options.Kind != "" && options.Kind != "DeleteOptions" {
		gv, _ := schema.ParseGroupVersion(options.APIVersion)
		return apierrors.NewBadRequest(fmt.Sprintf(
			"no kind %q is registered for version %q in scheme \"eventsvc\"", options.Kind, gv))
	}
	return nil
}

// Object is any API object.
type Object interface {
	runtime.Object
	Unmarshal([]byte) error
}

// Decode reads an object other than an event from a request body, with the kind
// that the body names. It ignores unknown fields.
func (c *Decoder) Decode(contentType string, body []byte, obj Object) error {
	media, err := bodyMedia(contentType)
	if err != nil {
		return err
	}
	if media == Protobuf {
		var kind metav1.TypeMeta
		kind, err = c.readProto(body, obj)
		obj.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind))
	} else {
		_, _, err = c.readText(media, body, obj, false)
	}
	if _, limited := errors.AsType[*event.LimitError](err); err == nil || limited {
		return err
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the body is not %s: %v", reflect.TypeOf(obj).Elem().Name(), err))
}
