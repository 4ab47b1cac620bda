//! Leader election by a Lease, as client-go's: acquire it, renew it until the process ends, release it.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client, Error};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

const LEASE_DURATION: Duration = Duration::from_secs(15);
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
const RETRY_PERIOD: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub struct LeaderElection {
    leases: Api<Lease>,
    name: &'static str,
    identity: String,
}

impl LeaderElection {
    pub fn new(client: Client, name: &'static str, identity: String) -> Self {
        Self { leases: Api::default_namespaced(client), name, identity }
    }

    /// Return once the lease is held.
    pub async fn acquire(&self) {
        loop {
            match self.try_acquire_or_renew().await {
                Ok(true) => return info!("{} leads", self.identity),
                Ok(false) => {}
                Err(error) => warn!("the lease was not acquired: {error}"),
            }
            sleep(RETRY_PERIOD).await;
        }
    }

    /// Renew the lease until that has failed for too long.
    pub async fn renew(&self) {
        let mut renewed = Instant::now();
        while renewed.elapsed() < RENEW_DEADLINE {
            sleep(RETRY_PERIOD).await;
            match self.try_acquire_or_renew().await {
                Ok(true) => renewed = Instant::now(),
                Ok(false) => return,
                Err(error) => warn!("the lease was not renewed: {error}"),
            }
        }
    }

    /// Let other candidates lead at once.
    pub async fn release(&self) -> Result<(), Error> {
        let mut lease = self.leases.get(self.name).await?;
        let spec = lease.spec.get_or_insert_default();
        (spec.holder_identity, spec.lease_duration_seconds) = (None, Some(1));
        self.leases.replace(self.name, &PostParams::default(), &lease).await.map(drop)
    }

    async fn try_acquire_or_renew(&self) -> Result<bool, Error> {
        let Some(mut lease) = self.leases.get_opt(self.name).await? else {
            let mut lease = Lease::default();
            lease.metadata.name = Some(self.name.into());
            lease.spec = Some(self.held(&LeaseSpec::default()));
            self.leases.create(&PostParams::default(), &lease).await?;
            return Ok(true);
        };
        let spec = lease.spec.get_or_insert_default();
        if !self.is_available(spec) {
            return Ok(false);
        }
        *spec = self.held(spec);
        self.leases.replace(self.name, &PostParams::default(), &lease).await?; // 409 if another was faster
        Ok(true)
    }

    fn is_available(&self, spec: &LeaseSpec) -> bool {
        let holder = spec.holder_identity.as_deref().unwrap_or_default();
        let is_expired = spec.renew_time.as_ref().is_none_or(|time| time.0 + LEASE_DURATION < Timestamp::now());
        holder.is_empty() || holder == self.identity || is_expired
    }

    fn held(&self, before: &LeaseSpec) -> LeaseSpec {
        let now = Some(MicroTime(Timestamp::now()));
        let is_ours = before.holder_identity.as_ref() == Some(&self.identity);
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(LEASE_DURATION.as_secs() as i32),
            acquire_time: if is_ours { before.acquire_time.clone() } else { now.clone() },
            renew_time: now,
            lease_transitions: Some(before.lease_transitions.unwrap_or(0) + i32::from(!is_ours)),
            ..before.clone()
        }
    }
}
