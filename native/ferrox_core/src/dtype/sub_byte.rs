//! Types of 2 and 4 bits. A byte holds several elements, the first one in the highest bits, as in
//! an Erlang bitstring.

use crate::cost::{Cost, PACKED_ELEMENT_COST};
use crate::{DType, Error};

/// Unpacks a tensor to one byte for each element, sign-extended for signed types.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory for the bytes.
pub fn unpack(op: &'static str, dtype: DType, shape: &[usize], packed: &[u8]) -> Result<Vec<u8>, Error> {
    let bits = dtype.bits();
    let per_byte = 8 / bits;
    let signed = dtype.storage() == DType::S8;
    let mut wide = zeroed(op, dtype, shape)?;
    for (elements, &byte) in wide.chunks_mut(per_byte).zip(packed) {
        for (i, element) in elements.iter_mut().enumerate() {
            // The element is moved to the top of the byte, then shifted down.
            let top = byte << (i * bits);
            *element = if signed { ((top as i8) >> (8 - bits)) as u8 } else { top >> (8 - bits) };
        }
    }
    Ok(wide)
}

/// Allocates a zero byte for each element of a shape.
///
/// # Errors
///
/// `Error::TooLarge` if there is no memory for the bytes.
pub fn zeroed(op: &'static str, dtype: DType, shape: &[usize]) -> Result<Vec<u8>, Error> {
    let size = shape.iter().product();
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).map_err(|_| Error::TooLarge { op, dtype, shape: shape.to_vec() })?;
    bytes.resize(size, 0);
    Ok(bytes)
}

/// Packs the low bits of each byte of `wide`; unused bits at the end are zero.
pub fn pack(dtype: DType, wide: &[u8], packed: &mut [u8]) {
    let bits = dtype.bits();
    let mask = (1u8 << bits) - 1;
    for (elements, byte) in wide.chunks(8 / bits).zip(packed) {
        *byte =
            elements.iter().enumerate().fold(0, |byte, (i, &e)| byte | (e & mask) << (8 - bits * (i + 1)));
    }
}

/// The cost of unpacking or packing an element of each packed type in `dtypes`.
pub(crate) fn cost(dtypes: &[DType]) -> Cost {
    PACKED_ELEMENT_COST * dtypes.iter().filter(|dtype| dtype.is_packed()).count() as Cost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_undoes_unpacking() {
        for dtype in [DType::U2, DType::U4, DType::S2, DType::S4] {
            let bytes = [0b1001_0011, 0b0110_1100];
            let size = 16 / dtype.bits();
            let wide = unpack("test", dtype, &[size], &bytes).expect("small");
            assert_eq!(wide.len(), size);
            let mut back = [0; 2];
            pack(dtype, &wide, &mut back);
            assert_eq!(back, bytes, "{dtype}");
        }
        assert_eq!(unpack("test", DType::S2, &[3], &[0b1101_1000]), Ok(vec![0xff, 1, 0xfe]));
        assert_eq!(unpack("test", DType::U4, &[1], &[0b1001_0000]), Ok(vec![9]));
    }
}
