//! The requests of clients.

use crate::client::{Client, End};
use crate::messages::{NO_ID, failure, notification, success};
use crate::params::Params;
use crate::subscription::Subscription;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The number of subscriptions of a client.
const SUBSCRIPTIONS_MAX: usize = 64;
/// The number of addresses and topics that all of them compare.
const WANTED_MAX: usize = 4096;

impl Client {
    /// Answers a request.
    pub(crate) async fn request(&mut self, text: &str) -> Result<(), End> {
        let request = match serde_json::from_str::<&RawValue>(text) {
            Ok(request) => serde_json::from_str::<BTreeMap<String, &RawValue>>(request.get()).unwrap_or_default(),
            Err(error) => return self.send(failure(NO_ID, -32700, &format!("not JSON: {error}"))).await,
        };
        let id = request.get("id").map_or(NO_ID, |id| id.get());
        let params = match request.get("params").map_or(Ok(Value::Null), |params| serde_json::from_str(params.get())) {
            Ok(params) => params,
            Err(why) => return self.send(failure(id, -32602, &format!("params: {why}"))).await,
        };
        let method = request.get("method").and_then(|method| serde_json::from_str::<String>(method.get()).ok());
        let answer = match method.as_deref() {
            Some("eth_subscribe") => return self.subscribe(id, &params).await,
            Some("eth_unsubscribe") => {
                let before = self.subscriptions.len();
                let ended = params[0].as_str().unwrap_or_default();
                self.subscriptions.retain(|subscription| format!("{:#x}", subscription.id) != ended);
                success(id, &(self.subscriptions.len() < before))
            }
            Some(other) => {
                let why = format!("there is no method {other}; there are eth_subscribe and eth_unsubscribe");
                failure(id, -32601, &why)
            }
            None => failure(id, -32600, "expected an object with `method`"),
        };
        self.send(answer).await
    }

    /// Begins a subscription. If it goes on from a place, what was told since is told first.
    async fn subscribe(&mut self, id: &str, params: &Value) -> Result<(), End> {
        if self.subscriptions.len() >= SUBSCRIPTIONS_MAX {
            let why = "a connection has at most 64 subscriptions: end one, or open another";
            return self.send(failure(id, -32000, why)).await;
        }
        let wanted: usize = self.subscriptions.iter().map(Subscription::wanted_len).sum();
        let made = Params::read(params).and_then(|params| {
            if wanted + params.wanted_len() > WANTED_MAX {
                return Err("a connection has at most 4,096 addresses and topics: open another one".to_owned());
            }
            let resumes = params.resume_from.is_some();
            let mut subscription = Subscription::new(self.next_id, params, self.hub.end());
            let (first, history) = if resumes { self.hub.history() } else { (0, Vec::new()) };
            let gap = subscription.resume(first, &history)?;
            Ok((subscription, gap))
        });
        let (subscription, gap) = match made {
            Ok(made) => made,
            Err(why) => return self.send(failure(id, -32602, &why)).await,
        };
        self.next_id += 1;
        self.send(success(id, &format!("{:#x}", subscription.id))).await?;
        if let Some(gap) = gap {
            self.send(notification(subscription.id, &gap)).await?;
        }
        self.subscriptions.push(subscription);
        Ok(())
    }
}
