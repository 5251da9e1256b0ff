//! `reconfd`: guest channels, the decision, jobs, audit.
