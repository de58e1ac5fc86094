//! The commands, written once: as they stand here they are futures; see [`dual`](world::dual) for the other half.

mod change;
mod delete;
mod discover;
mod evict;
mod follow;
mod get;
mod logs;
mod patch;
mod scale;
mod session;
mod wait;
mod watch;

use super::world::{self, World, dual};
use crate::args::{Coil, Command, ConfigCommand};
use crate::fault::Fault;
use crate::out::Out;
use session::Session;

/// Does what the command line says.
#[dual]
pub(crate) async fn run(coil: Coil, world: World) -> Result<(), Fault> {
    let mut out = Out::new();
    let mut session = Session::new(&coil, world);
    let done = command(coil.command, &mut session, &mut out).await;
    // What was found before a failure is printed all the same.
    let flushed = out.flush();
    done.and(flushed)
}

#[dual]
async fn command(command: Command, session: &mut Session, out: &mut Out) -> Result<(), Fault> {
    match command {
        Command::Config { command: ConfigCommand::View { raw, output, .. } } => {
            out.print(&session.configuration(raw, output).await?)
        }
        Command::Whoami(args) => discover::whoami(args, session, out).await,
        Command::ApiResources(args) => discover::resources(args, session, out).await,
        Command::Version(args) => discover::version(args, session, out).await,
        Command::Get(args) => get::run(args, session, out).await,
        Command::Follow(args) => follow::run(args, session).await,
        Command::Create(args) => change::create(args, session, out).await,
        Command::Apply(args) => change::apply(args, session, out).await,
        Command::Replace(args) => change::replace(args, session, out).await,
        Command::Delete(args) => delete::run(args, session, out).await,
        Command::Patch(args) => patch::run(args, session, out).await,
        Command::Scale(args) => scale::run(args, session, out).await,
        Command::Wait(args) => wait::run(args, session, out).await,
        Command::Logs(args) => logs::run(args, session, out).await,
        Command::Evict(args) => evict::run(args, session, out).await,
    }
}
