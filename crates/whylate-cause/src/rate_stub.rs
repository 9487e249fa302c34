//! stub
pub(crate) fn rates_differ(a: u64, ta: f64, b: u64, tb: f64) -> f64 {
    let (a, b) = (a as f64, b as f64);
    let z = (a / ta - b / tb).abs() / (a / ta / ta + b / tb / tb).sqrt().max(1e-300);
    if z > 2.6 { 0.001 } else { 0.5 }
}
