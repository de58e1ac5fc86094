//! Certificates of clients. Each of a user's groups is an organization of the subject
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#x509-client-certificates>), and rcgen can
//! hold just one of those, so that their DER is written here.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{Error, KeyPair, PublicKeyData, SigningKey};

/// A certificate in PEM for `key`, of user `name` in `groups`; `signer` is a P-256 key of the authority `issuer`.
pub(super) fn client(
    issuer: &str,
    signer: &KeyPair,
    key: &KeyPair,
    name: &str,
    groups: &[&str],
) -> Result<String, Error> {
    let subject = groups.iter().map(|group| attribute(ORGANIZATION, group)).chain([attribute(COMMON_NAME, name)]);
    let to_sign = to_be_signed(issuer, &subject.collect::<Vec<_>>().concat(), key);
    let signature = signer.sign(&to_sign)?;
    Ok(pem("CERTIFICATE", &sequence(&[&to_sign, &signature_algorithm(), &bit_string(&signature)])))
}

/// `TBSCertificate` of [RFC 5280, section 4.1](https://www.rfc-editor.org/rfc/rfc5280#section-4.1).
fn to_be_signed(issuer: &str, subject: &[u8], key: &KeyPair) -> Vec<u8> {
    // Serial numbers are to differ within one authority, and the key's own random bytes do.
    let serial = &key.der_bytes()[1..17];
    let usage = octet_string(&sequence(&[&object_identifier(CLIENT_AUTH)]));
    let extension = sequence(&[&object_identifier(EXTENDED_KEY_USAGE), &usage]);
    sequence(&[
        &tlv(0xa0, &[&tlv(INTEGER, &[&[2]])]),
        &tlv(INTEGER, &[&[1], serial]),
        &signature_algorithm(),
        &sequence(&[&attribute(COMMON_NAME, issuer)]),
        &sequence(&[&utc_time(NOT_BEFORE), &generalized_time(NOT_AFTER)]),
        &sequence(&[subject]),
        &key.subject_public_key_info(),
        &tlv(0xa3, &[&sequence(&[&extension])]),
    ])
}

fn attribute(kind: &[u8], value: &str) -> Vec<u8> {
    let pair = sequence(&[&object_identifier(kind), &tlv(UTF8_STRING, &[value.as_bytes()])]);
    tlv(SET, &[&pair])
}

fn signature_algorithm() -> Vec<u8> {
    sequence(&[&object_identifier(ECDSA_WITH_SHA256)])
}

fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    tlv(SEQUENCE, parts)
}

fn object_identifier(encoded: &[u8]) -> Vec<u8> {
    tlv(OBJECT_IDENTIFIER, &[encoded])
}

fn octet_string(bytes: &[u8]) -> Vec<u8> {
    tlv(OCTET_STRING, &[bytes])
}

fn bit_string(bytes: &[u8]) -> Vec<u8> {
    tlv(BIT_STRING, &[&[0], bytes])
}

fn utc_time(text: &str) -> Vec<u8> {
    tlv(UTC_TIME, &[text.as_bytes()])
}

fn generalized_time(text: &str) -> Vec<u8> {
    tlv(GENERALIZED_TIME, &[text.as_bytes()])
}

/// One DER value: tag, length, contents.
fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let contents = parts.concat();
    let mut value = vec![tag];
    match u8::try_from(contents.len()) {
        Ok(short) if short < 0x80 => value.push(short),
        _ => {
            let length = contents.len().to_be_bytes();
            let digits: Vec<u8> = length.into_iter().skip_while(|&byte| byte == 0).collect();
            value.push(0x80 | u8::try_from(digits.len()).expect("a length has at most 8 bytes"));
            value.extend(digits);
        }
    }
    value.extend(contents);
    value
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|line| str::from_utf8(line).expect("base64 is ASCII")).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// As wide as rcgen's own: what is signed here lives as long as one test.
const NOT_BEFORE: &str = "750101000000Z";
const NOT_AFTER: &str = "40960101000000Z";

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// 2.5.4.10
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];
/// 2.5.29.37
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
/// 1.3.6.1.5.5.7.3.2
const CLIENT_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];
/// 1.2.840.10045.4.3.2
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn der_lengths_take_as_many_bytes_as_they_need() {
        assert_eq!(tlv(4, &[&[7; 3]])[..2], [4, 3]);
        assert_eq!(tlv(4, &[&[7; 127]])[..2], [4, 127]);
        assert_eq!(tlv(4, &[&[7; 128]])[..3], [4, 0x81, 128]);
        assert_eq!(tlv(4, &[&[7; 255]])[..3], [4, 0x81, 255]);
        assert_eq!(tlv(4, &[&[7; 300]])[..4], [4, 0x82, 1, 44]);
    }
}
