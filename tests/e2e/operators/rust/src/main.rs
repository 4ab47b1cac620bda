//! An operator written with kube-rs: it keeps a ConfigMap and a Deployment for each Widget, of the same name.
//!
//! It reads KUBECONFIG, POD_NAME and WATCH_LIST, prints "running" once it leads, and logs to stderr.

mod lease;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use std::{env, io};

use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, PartialObjectMeta, Patch, PatchParams};
use kube::core::{GroupVersionKind, NamespaceResourceScope};
use kube::runtime::controller::{self, Action, Controller};
use kube::runtime::events::{self, EventType, Recorder};
use kube::runtime::finalizer::{self, finalizer};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::watcher;
use kube::{Api, Client, Config, CustomResource, Error, Resource, ResourceExt, discovery};
use lease::LeaderElection;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info};

const NAME: &str = "operator";
const FINALIZER: &str = "example.com/cleanup";

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "example.com", version = "v1", kind = "Widget", namespaced, status = "WidgetStatus", schema = "disabled")]
struct WidgetSpec {
    size: i32,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct WidgetStatus {
    size: i32,
    observed_generation: i64,
}

struct Context {
    client: Client,
    recorder: Recorder,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().without_time().with_ansi(false).with_writer(io::stderr).init();
    let mut config = Config::infer().await?;
    config.headers.push(("user-agent".parse()?, NAME.parse()?)); // kube sends none by itself
    let client = Client::try_from(config)?;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    await_condition(definitions, "widgets.example.com", conditions::is_crd_established()).await?;
    let kind = GroupVersionKind::gvk("example.com", "v1", "Widget");
    let (resource, capabilities) = discovery::pinned_kind(&client, &kind).await?;
    info!("{} in {}: {:?}", resource.plural, resource.api_version, capabilities.subresources.len());

    let election = LeaderElection::new(client.clone(), NAME, env::var("POD_NAME")?);
    election.acquire().await;
    println!("running");
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        () = control(client) => {}
        () = election.renew() => anyhow::bail!("the lease is lost"),
        _ = terminated.recv() => {}
    }
    Ok(election.release().await?)
}

async fn control(client: Client) {
    let all = if env::var("WATCH_LIST").is_ok() {
        watcher::Config::default().streaming_lists()
    } else {
        watcher::Config::default().page_size(2)
    };
    let labelled = all.clone().labels(NAME);
    let recorder = Recorder::new(client.clone(), NAME.into());
    Controller::new(Api::<Widget>::all(client.clone()), all)
        .owns(Api::<ConfigMap>::all(client.clone()), labelled.clone())
        .owns(Api::<PartialObjectMeta<Deployment>>::all(client.clone()), labelled)
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(1)), Arc::new(Context { client, recorder }))
        .for_each(|done| async move {
            match done {
                Ok(_) | Err(controller::Error::ObjectNotFound(_)) => {} // deleted since it was enqueued
                Err(failed) => error!("{failed}"),
            }
        })
        .await;
}

async fn reconcile(widget: Arc<Widget>, context: Arc<Context>) -> Result<Action, finalizer::Error<Error>> {
    let namespace = widget.namespace().unwrap_or_default();
    let widgets: Api<Widget> = Api::namespaced(context.client.clone(), &namespace);
    let reconciled = finalizer(&widgets, FINALIZER, widget, |event| async {
        match event {
            finalizer::Event::Apply(widget) => apply(&widget, &context).await,
            finalizer::Event::Cleanup(widget) => clean_up(&widget, &context).await,
        }
    });
    match reconciled.await {
        // The cache does not show yet that the Widget is deleted.
        Err(finalizer::Error::RemoveFinalizer(Error::Api(status))) if status.is_not_found() => {
            Ok(Action::await_change())
        }
        done => done,
    }
}

async fn apply(widget: &Widget, context: &Context) -> Result<Action, Error> {
    let size = widget.spec.size;
    apply_child::<ConfigMap>(widget, context, json!({"data": {"size": size.to_string()}})).await?;
    let labels = json!({"widget": widget.name_any()});
    let containers = json!([{"name": "widget", "image": "widget:1"}]);
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
    let spec = json!({"replicas": size, "selector": {"matchLabels": labels}, "template": template});
    apply_child::<Deployment>(widget, context, json!({"spec": spec})).await?;
    let annotated = json!({"metadata": {"annotations": {"example.com/size": size.to_string()}}});
    let deployments: Api<Deployment> = siblings(widget, context);
    deployments.patch(&widget.name_any(), &PatchParams::default(), &Patch::Strategic(annotated)).await?;

    let generation = widget.metadata.generation.unwrap_or_default();
    if widget.status.as_ref().is_none_or(|status| status.observed_generation != generation) {
        let status = json!({"status": WidgetStatus { size, observed_generation: generation }});
        let widgets: Api<Widget> = siblings(widget, context);
        widgets.patch_status(&widget.name_any(), &PatchParams::default(), &Patch::Merge(status)).await?;
        let event = events::Event {
            type_: EventType::Normal,
            reason: "Reconciled".into(),
            note: Some(format!("size {size}")),
            action: "Reconcile".into(),
            secondary: None,
        };
        context.recorder.publish(&event, &widget.object_ref(&())).await?;
    }
    Ok(Action::await_change())
}

async fn apply_child<K>(widget: &Widget, context: &Context, mut child: Value) -> Result<(), Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    child["apiVersion"] = json!(K::api_version(&()));
    child["kind"] = json!(K::kind(&()));
    let owner = widget.controller_owner_ref(&());
    child["metadata"] = json!({"name": widget.name_any(), "labels": {NAME: "rust"}, "ownerReferences": [owner]});
    let parameters = PatchParams::apply(NAME).force();
    siblings::<K>(widget, context).patch(&widget.name_any(), &parameters, &Patch::Apply(child)).await.map(drop)
}

async fn clean_up(widget: &Widget, context: &Context) -> Result<Action, Error> {
    delete_child::<ConfigMap>(widget, context).await?;
    delete_child::<Deployment>(widget, context).await?;
    Ok(Action::await_change())
}

async fn delete_child<K>(widget: &Widget, context: &Context) -> Result<(), Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    match siblings::<K>(widget, context).delete(&widget.name_any(), &DeleteParams::background()).await {
        Err(Error::Api(status)) if status.is_not_found() => Ok(()),
        deleted => deleted.map(drop),
    }
}

fn siblings<K>(widget: &Widget, context: &Context) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    Api::namespaced(context.client.clone(), &widget.namespace().unwrap_or_default())
}
