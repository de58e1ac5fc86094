//! The same source in both worlds.

/// What each world brings along.
macro_rules! shared {
    () => {
        /// Adds up.
        #[dual]
        pub(crate) async fn sum(numbers: &[u8], read: impl AsyncFn(u8) -> u8) -> u8 {
            let mut sum = 0;
            for number in numbers {
                sum += match number {
                    0 => 0,
                    number => { read(*number).await }.min(100),
                };
            }
            sum
        }

        #[dual]
        pub(crate) async fn later() -> u8 {
            let five = 5;
            run(async move { five + 1 }).await
        }
    };
}

mod tasks {
    use cloudcoil_dual::asynchronous as dual;

    async fn run(work: impl Future<Output = u8>) -> u8 {
        work.await
    }

    shared!();
}

mod threads {
    use cloudcoil_dual::blocking as dual;

    fn run(work: impl FnOnce() -> u8 + Send + 'static) -> u8 {
        std::thread::spawn(work).join().expect("nothing here panics")
    }

    shared!();
}

fn polled<T>(future: impl Future<Output = T>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("nothing here waits"),
    }
}

#[test]
fn both_worlds_come_to_the_same() {
    assert_eq!(polled(tasks::sum(&[1, 0, 200], async |number| number)), 101);
    assert_eq!(threads::sum(&[1, 0, 200], |number| number), 101);
    assert_eq!((polled(tasks::later()), threads::later()), (6, 6));
}
