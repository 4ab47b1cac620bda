import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;

/** The custom resource. */
@Group("example.com")
@Version("v1")
public final class Widget extends CustomResource<Widget.Spec, Widget.Status> implements Namespaced {
  private static final long serialVersionUID = 1;

  public static final class Spec {
    public int size;
  }

  public static final class Status {
    public int size;
    public long observedGeneration;
  }
}
