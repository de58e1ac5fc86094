//! Lists that come in pages.

use crate::error::Error;
use crate::list::ResourceList;
use crate::request::{ListParams, ListVersion};

/// Which page of a list is to be asked for next, when the objects are used as they come.
///
/// If the token of the next page is too old by the time it is asked for, the server's offer to go on from the newest version
/// is taken: objects that were created or deleted since the first page may then be missed or reported.
///
/// ```
/// use cloudcoil_core::{ListParams, Pages, ResourceList, Unstructured};
///
/// let mut pages = Pages::new(ListParams::default());
/// assert_eq!(pages.next().and_then(|params| params.limit), Some(500));
/// let page = pages.heard(Ok(ResourceList::<Unstructured>::default()))?;
/// assert!(page.items.is_empty() && pages.next().is_none());
/// # Ok::<(), cloudcoil_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pages(Option<ListParams>);

impl Pages {
    /// How many objects a page has unless another number is asked for: as many as `kubectl` asks for at a time.
    pub const SIZE: u32 = 500;

    /// The pages of a list.
    pub fn new(mut params: ListParams) -> Self {
        params.limit.get_or_insert(Self::SIZE);
        Self(Some(params))
    }

    /// The page to ask for; `None` after the last one, and after a failure.
    pub const fn next(&self) -> Option<&ListParams> {
        self.0.as_ref()
    }

    /// Takes note of what came of asking for it.
    ///
    /// # Errors
    /// The failure, unless it is one of a token for which the server offers another: then the page is empty.
    pub fn heard<K>(&mut self, page: Result<ResourceList<K>, Error>) -> Result<ResourceList<K>, Error> {
        let params = self.0.take();
        let token = match &page {
            Ok(page) => page.continue_token.clone(),
            Err(error) => fresh_token(error),
        };
        self.0 = params.zip(token).map(|(params, token)| following(params, token));
        match page {
            Err(_) if self.0.is_some() => Ok(ResourceList::default()),
            page => page,
        }
    }
}

/// All pages of a list as one. If a token expires on the way, everything is read anew at once.
#[derive(Clone, Debug, PartialEq)]
pub struct WholeList<K> {
    params: ListParams,
    list: ResourceList<K>,
}

impl<K> WholeList<K> {
    /// A list of which nothing has been read.
    pub fn new(params: ListParams) -> Self {
        Self { params, list: ResourceList::default() }
    }

    /// The page to ask for.
    pub const fn next(&self) -> &ListParams {
        &self.params
    }

    /// Takes a page in; answers when the list is whole, or when it fails.
    pub fn heard(&mut self, page: Result<ResourceList<K>, Error>) -> Option<Result<ResourceList<K>, Error>> {
        let page = match page {
            Err(error) if error.is_expired() && self.params.continue_token.is_some() && !self.list.items.is_empty() => {
                self.params.continue_token = None;
                self.params.limit = None;
                self.list = ResourceList::default();
                return None;
            }
            Err(error) => return Some(Err(error)),
            Ok(page) => page,
        };
        let next = page.continue_token.clone();
        self.list.append(page);
        match next {
            Some(token) => {
                self.params = following(std::mem::take(&mut self.params), token);
                None
            }
            None => Some(Ok(std::mem::take(&mut self.list))),
        }
    }
}

/// The list whose first page comes after that of `params`: the token stands for the version too.
fn following(params: ListParams, token: String) -> ListParams {
    ListParams { continue_token: Some(token), version: ListVersion::MostRecent, ..params }
}

/// The token with which a list whose own has expired can go on.
fn fresh_token(error: &Error) -> Option<String> {
    let status = error.status().filter(|_| error.is_expired())?;
    Some(status.metadata.continue_token.clone()).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Status;

    fn page(items: &[u8], token: Option<&str>) -> ResourceList<u8> {
        ResourceList { items: items.to_vec(), continue_token: token.map(ToOwned::to_owned), ..ResourceList::default() }
    }

    fn expired(token: &str) -> Error {
        let mut status = Status::failure(410, "Expired", "too old");
        status.metadata.continue_token = token.into();
        status.into()
    }

    fn token(params: Option<&ListParams>) -> Option<&str> {
        params?.continue_token.as_deref()
    }

    #[test]
    fn pages_follow_tokens_and_take_the_offer_of_a_fresh_one() {
        let exact = ListParams { version: ListVersion::Exact("7".into()), ..ListParams::default() };
        let mut pages = Pages::new(exact);
        assert_eq!(pages.heard(Ok(page(&[1], Some("a")))).unwrap().items, [1]);
        assert_eq!(token(pages.next()), Some("a"));
        assert_eq!(pages.next().unwrap().version, ListVersion::MostRecent);
        assert!(pages.heard::<u8>(Err(expired("b"))).unwrap().items.is_empty());
        assert_eq!(token(pages.next()), Some("b"));
        assert!(pages.heard::<u8>(Err(expired(""))).is_err());
        assert!(pages.next().is_none());
    }

    #[test]
    fn a_whole_list_whose_token_expires_is_read_anew_at_once() {
        let mut whole = WholeList::new(ListParams { limit: Some(1), ..ListParams::default() });
        assert!(whole.heard(Ok(page(&[1], Some("a")))).is_none());
        assert_eq!(whole.next().continue_token.as_deref(), Some("a"));
        assert!(whole.heard(Err(expired("b"))).is_none());
        assert_eq!(whole.next(), &ListParams::default());
        assert_eq!(whole.heard(Ok(page(&[1, 2], None))).unwrap().unwrap().items, [1, 2]);
    }

    #[test]
    fn a_list_that_fails_at_once_fails() {
        let mut whole =
            WholeList::<u8>::new(ListParams { continue_token: Some("old".into()), ..ListParams::default() });
        assert!(whole.heard(Err(expired("new"))).unwrap().is_err());
    }
}
